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
  /** The attempt at which the first courier dies. The last courier never dies. */
  readonly diesAt: number | undefined
  /** The settlements that the store refuses. */
  readonly outages: readonly number[]
}

const scenarios: fc.Arbitrary<Scenario> = fc.record({
  changes: fc.integer({ min: 1, max: 8 }),
  couriers: fc.integer({ min: 1, max: 3 }),
  fates: fc.array(fc.constantFrom(...fates), { maxLength: 8 }),
  diesAt: fc.option(fc.nat(10), { nil: undefined }),
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
  await fc.assert(property, { numRuns: 300 })
}, 300_000)

const never = new Promise<never>(() => {})
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
  #isFirstDead = false
  #nowMs = 0
  #announcedCount = 0
  #attempts = 0
  #settlements = 0

  constructor(scheduler: fc.Scheduler, scenario: Scenario) {
    this.#scheduler = scheduler
    this.#scenario = scenario
    this.#outbox = createOutbox(() => this.#nowMs, names)
  }

  /** Resolves once all changes are delivered and each courier that lives has stopped. */
  async run() {
    const { couriers } = this.#scenario
    const announcement = this.#announceChanges()
    const runs = Array.from({ length: couriers }, (_, n) => this.#runCourier(n))
    // If there are several couriers, the first may never end.
    const lasting = runs.slice(couriers > 1 ? 1 : 0)
    await Promise.all([announcement, ...lasting])
  }

  /** Returns whether nothing failed, so that the changes come in their order. */
  isCalm() {
    const { fates, outages } = this.#scenario
    return fates.length === 0 && outages.length === 0 && !this.#isFirstDead
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

  #runCourier(n: number) {
    const options = {
      outbox: this.#outboxOf(n),
      webhooks: this.#outbox.webhooks,
      report: () => {},
      post: (post: Post) => this.#receive(n, post),
    }
    const clock = {
      elapsed: () => this.#nowMs,
      wait: (ms: number) => this.#wait(n, ms),
    }
    const courier = new Courier(options, limits, clock)
    const { signal: abort } = new AbortController()
    return courier.run({ stop: this.#stop.signal, abort })
  }

  #isDead(courier: number) {
    return courier === 0 && this.#isFirstDead
  }

  #outboxOf(courier: number): Outbox {
    const outbox = this.#outbox
    const settle: Outbox['settle'] = async (claim, outcome) => {
      if (this.#scenario.outages.includes(this.#settlements++)) {
        throw outage()
      }
      return outbox.settle(claim, outcome)
    }
    return {
      ...outbox,
      claim: bounds => this.#call(courier, () => outbox.claim(bounds)),
      settle: (...settlement) => this.#call(courier, () => settle(...settlement)),
    }
  }

  /** Makes a call of a courier in its turn. A dead courier learns nothing more. */
  async #call<Result>(courier: number, act: () => Promise<Result>) {
    if (this.#isDead(courier)) {
      return never
    }
    await this.#turn()
    const result = this.#isDead(courier) ? never : await act()
    await this.#turn()
    return result
  }

  async #wait(courier: number, ms: number) {
    await this.#turn()
    if (this.#isDead(courier)) {
      return never
    }
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

  async #receive(courier: number, { url, headers }: Post) {
    const { fates, couriers, diesAt } = this.#scenario
    const fate = fates[this.#attempts] ?? 'received'
    if (courier === 0 && couriers > 1 && this.#attempts === diesAt) {
      this.#isFirstDead = true
    }
    this.#attempts++

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

    if (this.#isDead(courier)) {
      return never
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
