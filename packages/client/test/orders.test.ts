import {
  createPlantClient,
  NoAnswerError,
  RefusedError,
  type Version,
} from '@plant-store/client'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'

const attemptsMax = 3
const kinds = ['create', 'replace', 'remove', 'replaceIf', 'removeIf'] as const
const expected = 'expected' as Version
/**
 * The fate of one request. Only after `busy` and `not connected` a client knows that
 * nothing was changed.
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

const call = fc.record({
  kind: fc.constantFrom(...kinds),
  fates: fc.array(fc.constantFrom(...fates), { maxLength: attemptsMax }),
  /** Another client changes the plant before this request. Mostly absent. */
  changedAt: fc.option(fc.nat(attemptsMax), { freq: 2, nil: undefined }),
  /** The caller gives up at this request. Mostly absent. */
  givesUpAt: fc.option(fc.nat(attemptsMax), { freq: 3, nil: undefined }),
})

test('each call has one true outcome, and sends nothing after it', async () => {
  const random = vi.spyOn(Math, 'random').mockReturnValue(0)
  onTestFinished(() => random.mockRestore())
  const property = fc.asyncProperty(
    fc.scheduler(),
    fc.array(call, { maxLength: 6 }),
    async (scheduler, calls) => {
      const broken: string[] = []
      const settled = new Set<number>()
      const sent = calls.map(() => 0)
      const made = calls.map(() => 0)
      const callers = calls.map(() => new AbortController())

      const fetch = async (
        url: string | URL | Request,
        init: RequestInit = {},
      ): Promise<Response> => {
        const id = Number(/\d+$/.exec(`${url}`) ?? JSON.parse(`${init.body}`).id)
        const { kind, fates, changedAt, givesUpAt } = calls[id] as (typeof calls)[number]
        if (settled.has(id)) {
          broken.push(`${id} was sent again after it had its outcome`)
        }
        const at = sent[id] ?? 0
        const isChanged = changedAt !== undefined && at >= changedAt
        if (init.method === 'GET') {
          await scheduler.schedule(Promise.resolve())
          if (kind === 'removeIf' && made[id] && !isChanged) {
            return Response.json({ error: 40402, message: 'gone' }, { status: 404 })
          }
          return Response.json(
            { id, name: isChanged ? 'theirs' : 'n' },
            { headers: { etag: '"now"' } },
          )
        }
        sent[id] = at + 1
        if (kind === 'create' && made[id]) {
          broken.push(`${id} was created twice`)
        }
        const aborted = new Promise<never>((_, reject) =>
          init.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
        )
        const fate = fates[at] ?? 'done'
        const exchange = async () => {
          if (at === givesUpAt) {
            callers[id]?.abort(new Error('given up'))
          }
          await scheduler.schedule(Promise.resolve())
          const isConditional =
            new Headers(init.headers).get('if-match') === `"${expected}"`
          if (isConditional !== kind.endsWith('If')) {
            broken.push(`${kind} ${id} has lost its condition`)
          }
          const isRefused = isConditional && (isChanged || Boolean(made[id]))
          if (fate.startsWith('done') && !isRefused) {
            made[id] = (made[id] ?? 0) + 1
          }
          await scheduler.schedule(Promise.resolve())
          if (fate === 'not connected') {
            throw Object.assign(new TypeError('fetch failed'), { code: 'ECONNREFUSED' })
          }
          if (fate.endsWith('lost')) {
            throw new TypeError('fetch failed')
          }
          if (fate === 'busy') {
            return Response.json({ error: 50301, message: 'busy' }, { status: 503 })
          }
          if (fate.endsWith('failed')) {
            return Response.json({ error: 50302, message: 'failed' }, { status: 503 })
          }
          if (isRefused) {
            return Response.json(
              { error: 41201, message: 'in another state' },
              { status: 412 },
            )
          }
          if (!kind.startsWith('remove')) {
            return Response.json({ name: 'n' }, { headers: { etag: '"new"' } })
          }
          return (made[id] ?? 0) > 1
            ? Response.json({ error: 40402, message: 'gone' }, { status: 404 })
            : new Response(null, { status: 204 })
        }
        return Promise.race([exchange(), aborted])
      }

      const client = createPlantClient({
        baseUrl: 'http://store',
        token: 't',
        fetch,
        attemptsMax,
      })
      const outcomes = calls.map(({ kind }, id) => {
        const options = { signal: callers[id]?.signal as AbortSignal }
        const plant = { id: BigInt(id), name: 'n' }
        const answer = {
          create: () => client.create(plant, options),
          replace: () => client.replace(plant, options),
          remove: () => client.remove(plant.id, options),
          replaceIf: () => client.replace(plant, { ...options, ifMatch: expected }),
          removeIf: () => client.remove(plant.id, { ...options, ifMatch: expected }),
        }[kind]()
        return answer.then(
          () => {
            settled.add(id)
            if (made[id] === 0) {
              broken.push(`${kind} ${id} succeeded, and was not made`)
            }
          },
          error => {
            settled.add(id)
            if (error instanceof RefusedError || error instanceof NoAnswerError) {
              if (!error.mayHaveChanged && made[id]) {
                broken.push(`${kind} ${id} was made: ${error.message}`)
              }
            } else if (error !== callers[id]?.signal.reason) {
              broken.push(`${kind} ${id}: ${error}`)
            }
          },
        )
      })
      while (settled.size < calls.length) {
        if (scheduler.count() > 0) {
          await scheduler.waitOne()
        } else {
          await new Promise(setImmediate)
        }
      }
      await Promise.all(outcomes)
      await scheduler.waitAll()
      expect(broken).toEqual([])
      expect(Math.max(0, ...sent)).toBeLessThanOrEqual(attemptsMax)
    },
  )
  await fc.assert(property, { numRuns: 300 })
})
