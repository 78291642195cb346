import { Courier, courierLimits, type Outbox, type Post } from '@plant-store/webhooks'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createOutbox, minuteMs, outage } from './virtual.ts'

const names = ['a', 'b']
const plants = 3
/**
 * The fate of one attempt. After a lost answer, the listener has the plant and the
 * courier does not know it.
 */
const fates = ['received', 'failed', 'answer lost'] as const

interface Scenario {
  readonly changes: number
  readonly couriers: number
  readonly fates: readonly (typeof fates)[number][]
  /**
   * The settlements that the store refuses. They are as lost as those of a courier that
   * died.
   */
  readonly outages: readonly number[]
}

const scenarios: fc.Arbitrary<Scenario> = fc.record({
  changes: fc.integer({ min: 1, max: 8 }),
  couriers: fc.integer({ min: 1, max: 3 }),
  fates: fc.array(fc.constantFrom(...fates), { maxLength: 8 }),
  outages: fc.array(fc.nat(6), { maxLength: 2 }),
})

test('every webhook gets every change, those of a plant in order', async () => {
  const property = fc.asyncProperty(
    fc.scheduler(),
    scenarios,
    async (scheduler, scenario) => {
      const world = new World(scheduler, scenario)

      await scheduler.waitFor(world.run())

      expect(world.violations).toEqual([])
      const changes = Array.from({ length: scenario.changes }, (_, n) => n)
      for (const name of names) {
        // A late settlement, whose lease has ended, repeats deliveries.
        const received = [...new Set(world.receivedBy(name))]
        const inOrder = world.isCalm() ? received : received.toSorted()
        expect(inOrder, `the changes for ${name}`).toEqual(changes)
        for (let plant = 0; plant < plants; plant++) {
          const own = received.filter(change => change % plants === plant)
          expect(own, `those of plant ${plant}, for ${name}`).toEqual(own.toSorted())
        }
      }
    },
  )
  await fc.assert(property, { numRuns: 200 })
})

const limits = { ...courierLimits, pollMs: minuteMs, claimRowsMax: 3 }

/** Several couriers of one outbox, and the listeners of its webhooks. */
class World {
  readonly violations: string[] = []
  readonly #scheduler
  readonly #scenario
  readonly #outbox
  readonly #received: string[] = []
  /** The requests that have no answer yet, as URL and webhook-id. */
  readonly #underWay = new Set<string>()
  readonly #stop = new AbortController()
  #nowMs = 0
  #announcedCount = 0
  #attempts = 0
  #settlements = 0

  constructor(scheduler: fc.Scheduler, scenario: Scenario) {
    this.#scheduler = scheduler
    this.#scenario = scenario
    this.#outbox = createOutbox(() => this.#nowMs, names)
  }

  /** Resolves once all changes are delivered and each courier has stopped. */
  async run() {
    const couriers = Array.from({ length: this.#scenario.couriers }, () =>
      this.#runCourier(),
    )
    await Promise.all([this.#announceChanges(), ...couriers])
  }

  /** Returns whether nothing failed, so that the changes come in their order. */
  isCalm() {
    const { fates, outages } = this.#scenario
    return fates.length === 0 && outages.length === 0
  }

  receivedBy(name: string) {
    const requests = this.#received.filter(key => key.startsWith(`https://${name}.`))
    return requests.map(request => Number(/added_(\d+)/.exec(request)?.[1] ?? -1))
  }

  async #announceChanges() {
    while (this.#announcedCount < this.#scenario.changes) {
      await this.#turn()
      const change = this.#announcedCount
      this.#outbox.announceVersion(BigInt(change % plants), `${change}`)
      this.#announcedCount++
    }
  }

  #runCourier() {
    const options = {
      outbox: this.#outboxInTurns(),
      webhooks: this.#outbox.webhooks,
      report: () => {},
      post: (post: Post) => this.#receive(post),
    }
    const clock = {
      elapsed: () => this.#nowMs,
      wait: (ms: number) => this.#wait(ms),
    }
    const courier = new Courier(options, limits, clock)
    const { signal: abort } = new AbortController()
    return courier.run({ stop: this.#stop.signal, abort })
  }

  #outboxInTurns(): Outbox {
    const outbox = this.#outbox
    const settle: Outbox['settle'] = async (claim, outcome) => {
      if (this.#scenario.outages.includes(this.#settlements++)) {
        throw outage()
      }
      return outbox.settle(claim, outcome)
    }
    return {
      ...outbox,
      claim: bounds => this.#call(() => outbox.claim(bounds)),
      settle: (...settlement) => this.#call(() => settle(...settlement)),
    }
  }

  /** Makes a call of a courier in its turn. */
  async #call<Result>(act: () => Promise<Result>) {
    await this.#turn()
    const result = await act()
    await this.#turn()
    return result
  }

  async #wait(ms: number) {
    await this.#turn()
    const figures = await this.#outbox.figures()
    const isIdle = figures.every(({ waiting }) => waiting === 0)
    if (isIdle && this.#announcedCount === this.#scenario.changes) {
      this.#stop.abort()
    }
    // Time passes only while nothing is under way, so each attempt ends within its time.
    if (this.#underWay.size === 0) {
      this.#nowMs += ms
    }
  }

  async #receive({ url, headers }: Post) {
    const fate = this.#scenario.fates[this.#attempts++] ?? 'received'
    const request = `${url} ${headers['webhook-id']}`
    if ([...this.#underWay].some(other => other.startsWith(url))) {
      this.violations.push(`${request} was sent while another was under way`)
    }
    this.#underWay.add(request)
    await this.#turn()
    this.#underWay.delete(request)
    if (fate !== 'failed') {
      this.#received.push(request)
    }
    if (fate === 'answer lost') {
      throw new Error('lost')
    }
    return { status: fate === 'failed' ? 500 : 200, isExcessive: false }
  }

  #turn() {
    return this.#scheduler.schedule(Promise.resolve())
  }
}
