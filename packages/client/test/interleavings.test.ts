import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import {
  createPlantClient,
  NoAnswerError,
  type PlantClient,
  RefusedError,
  type Version,
} from '@plant-store/client'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'

const attemptsMax = 3
const kinds = ['create', 'replace', 'remove', 'replaceIf', 'removeIf'] as const
const version = 'expected' as Version
/**
 * The fate of one request. Only after `busy` and `not connected` does a client know that
 * nothing was changed. `lost` loses the request, and `done, but lost` its answer.
 */
const fates = [
  'done',
  'busy',
  'not connected',
  'lost',
  'done, but lost',
  'failed',
  'done, but failed',
] as const

interface Scenario {
  readonly kind: (typeof kinds)[number]
  readonly fates: readonly (typeof fates)[number][]
  /**
   * Another client changes the plant before this request. Absent in half of the
   * scenarios.
   */
  readonly changedAt: number | undefined
  /** The caller gives up at this request. Absent in a third of the scenarios. */
  readonly givesUpAt: number | undefined
}

const scenario: fc.Arbitrary<Scenario> = fc.record({
  kind: fc.constantFrom(...kinds),
  fates: fc.array(fc.constantFrom(...fates), { maxLength: attemptsMax }),
  changedAt: fc.option(fc.nat(attemptsMax), { freq: 2, nil: undefined }),
  givesUpAt: fc.option(fc.nat(attemptsMax), { freq: 3, nil: undefined }),
})

test('whatever happens, a call has one true outcome and sends nothing after', async () => {
  // Without jitter, the client makes another attempt at once.
  vi.spyOn(Math, 'random').mockReturnValue(0)
  const property = fc.asyncProperty(
    fc.scheduler(),
    fc.array(scenario, { maxLength: 6 }),
    async (scheduler, scenarios) => {
      const calls = scenarios.map((scenario, id) => new Call(id, scenario))
      const store = new FatefulStore(scheduler, calls)
      const { fetch } = store
      const options = { baseUrl: 'http://store', token: 't', fetch, attemptsMax }
      const client = createPlantClient(options)

      const settling = calls.map(call => settle(call, client))
      while (calls.some(call => !call.isSettled)) {
        // Release one request after another. Without one, let the client go on.
        await (scheduler.count() > 0 ? scheduler.waitOne() : setImmediate())
      }
      const violations = await Promise.all(settling)
      await scheduler.waitAll()

      expect([...store.violations, ...violations.flat()]).toEqual([])
      const sentCounts = calls.map(call => call.sentCount)
      expect(Math.max(0, ...sentCounts)).toBeLessThanOrEqual(attemptsMax)
    },
  )
  await fc.assert(property, { numRuns: 200 })
})

/** One call of the client, and what the store received and applied of it. */
class Call {
  readonly plant
  readonly scenario
  readonly name
  readonly caller = new AbortController()
  sentCount = 0
  appliedCount = 0
  isSettled = false

  constructor(id: number, scenario: Scenario) {
    this.plant = { id: BigInt(id), name: 'n' }
    this.scenario = scenario
    this.name = `${scenario.kind} ${id}`
  }

  isChangedByOthers() {
    const { changedAt } = this.scenario
    return changedAt !== undefined && this.sentCount >= changedAt
  }

  start(client: PlantClient) {
    const { plant } = this
    const { signal } = this.caller
    switch (this.scenario.kind) {
      case 'create':
        return client.create(plant, { signal })
      case 'replace':
        return client.replace(plant, { signal })
      case 'remove':
        return client.remove(plant.id, { signal })
      case 'replaceIf':
        return client.replace(plant, { signal, ifMatch: version })
      case 'removeIf':
        return client.remove(plant.id, { signal, ifMatch: version })
    }
  }
}

/** Makes the call, and returns how its outcome differs from what was applied. */
async function settle(call: Call, client: PlantClient) {
  const error: unknown = await call.start(client).then(
    () => undefined,
    reason => reason,
  )
  call.isSettled = true
  if (error === undefined) {
    return call.appliedCount === 0 ? [`${call.name} succeeded, but was not applied`] : []
  }
  if (error instanceof RefusedError || error instanceof NoAnswerError) {
    const isApplied = call.appliedCount > 0
    const isKnown = error instanceof RefusedError && error.number === 41201
    const isWrong = !error.mayHaveChanged || (isKnown && !call.isChangedByOthers())
    const isFalse = isApplied && isWrong
    return isFalse ? [`${call.name} was applied, but failed with ${error.message}`] : []
  }
  const isOfCaller = error === call.caller.signal.reason
  return isOfCaller ? [] : [`${call.name} failed with ${error}`]
}

/** Treats each request as its fate says, and notes what no client may send. */
class FatefulStore {
  readonly violations: string[] = []
  readonly #scheduler
  readonly #calls

  constructor(scheduler: fc.Scheduler, calls: readonly Call[]) {
    this.#scheduler = scheduler
    this.#calls = calls
  }

  readonly fetch = async (
    url: string | URL | Request,
    init: RequestInit = {},
  ): Promise<Response> => {
    // A create has the id in its body.
    const [idInUrl] = /\d+$/.exec(`${url}`) ?? []
    const id = Number(idInUrl ?? JSON.parse(`${init.body}`).id)
    const call = this.#calls[id]
    assert(call !== undefined, `no call has the id ${id}`)
    if (call.isSettled) {
      this.violations.push(`${call.name} was sent again after its outcome`)
    }
    return init.method === 'GET' ? this.#read(call) : this.#change(call, init)
  }

  /** A client reads after a 412, to learn whether its lost attempt was applied. */
  async #read(call: Call) {
    const isChanged = call.isChangedByOthers()
    await this.#turn()
    const { kind } = call.scenario
    if (kind === 'removeIf' && call.appliedCount > 0 && !isChanged) {
      return refusal(404, 40402)
    }
    const plant = { ...call.plant, id: Number(call.plant.id) }
    const answered = isChanged ? { ...plant, name: 'theirs' } : plant
    return Response.json(answered, { headers: { etag: '"now"' } })
  }

  async #change(call: Call, init: RequestInit) {
    if (call.scenario.kind === 'create' && call.appliedCount > 0) {
      this.violations.push(`${call.name} was created twice`)
    }
    const aborted = new Promise<never>((_, reject) =>
      init.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
    )
    return Promise.race([this.#exchange(call, new Headers(init.headers)), aborted])
  }

  async #exchange(call: Call, headers: Headers) {
    const { kind, fates, givesUpAt } = call.scenario
    const fate = fates[call.sentCount] ?? 'done'
    const isChanged = call.isChangedByOthers()
    const givesUp = call.sentCount === givesUpAt
    call.sentCount++
    if (givesUp) {
      call.caller.abort(new Error('given up'))
    }
    await this.#turn()

    const isConditional = headers.get('if-match') === `"${version}"`
    if (isConditional !== kind.endsWith('If')) {
      this.violations.push(`${call.name} has lost its condition`)
    }
    const isRefused = isConditional && (isChanged || call.appliedCount > 0)
    if (fate.startsWith('done') && !isRefused) {
      call.appliedCount++
    }
    await this.#turn()

    return failureOf(fate) ?? (isRefused ? refusal(412, 41201) : successOf(call))
  }

  #turn() {
    return this.#scheduler.schedule(Promise.resolve())
  }
}

/**
 * Returns the refusal of a request with this fate, or throws if no answer arrives.
 * Returns nothing if the store decides.
 */
function failureOf(fate: (typeof fates)[number]) {
  switch (fate) {
    case 'not connected':
      throw Object.assign(new TypeError('fetch failed'), { code: 'ECONNREFUSED' })
    case 'lost':
    case 'done, but lost':
      throw new TypeError('fetch failed')
    case 'busy':
      return refusal(503, 50301)
    case 'failed':
    case 'done, but failed':
      return refusal(503, 50302)
    case 'done':
      return
  }
}

function successOf({ scenario, appliedCount }: Call) {
  if (!scenario.kind.startsWith('remove')) {
    return Response.json({ name: 'n' }, { headers: { etag: '"new"' } })
  }
  const wasRemovedBefore = appliedCount > 1
  return wasRemovedBefore ? refusal(404, 40402) : new Response(null, { status: 204 })
}

function refusal(status: number, error: number) {
  return Response.json({ error, message: 'refused' }, { status })
}
