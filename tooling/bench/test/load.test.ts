import { temporaryFolder } from '@plant-store/harness'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Generator, hasWrk, measure } from '../src/load.ts'
import { type RunningTarget, startTarget, targets, tryOut } from '../src/targets.ts'

const temporary = temporaryFolder()
const folder = temporary.path
const load = { connections: 8, seconds: 1 }
let peer: RunningTarget

beforeAll(async () => {
  const target = targets.find(({ name }) => name === 'fastify-normal')
  if (!target) throw new Error('no such peer')
  peer = await startTarget(target, { folder, population: { seed: 1, idBits: 52 }, plants: 500 })
})

afterAll(async () => {
  await peer?.[Symbol.asyncDispose]()
  temporary[Symbol.dispose]()
})

test('a peer answers as ours would', () => tryOut(peer))

test.skipIf(!hasWrk)(
  'a mixed load is four reads to a create, and every create is found in the store',
  async () => {
    const { requests, created, p50Ms, p99Ms } = await measure(peer, {
      scenario: 'mixed',
      ...load,
    })
    expect(created).toBeGreaterThan(0)
    expect(created / requests).toBeCloseTo(0.2, 1)
    expect(p50Ms).toBeGreaterThan(0)
    expect(p99Ms).toBeGreaterThanOrEqual(p50Ms)
  },
)

test.skipIf(!hasWrk)('an answer that is not 200 fails the run', async () => {
  peer.next = 0
  const taken = measure(peer, { scenario: 'creates', ...load })
  await expect(taken).rejects.toThrow(/answers were not 200, such as: 400 .*the id is taken/)
})

// Nothing is stored; up to 8 creates could still have been under way.
test.each([1, -9])('%i creates that are not what the store holds fail the run', async created => {
  const liar: Generator = async () => ({
    ...{ requests: 1, perSecond: 1, p50Ms: 1, p99Ms: 1, made: 0, refused: 0, refusal: '', broken: 0 },
    created,
  })
  const liarsLoad = { scenario: 'creates', connections: 8, seconds: 1 } as const
  await expect(measure(peer, liarsLoad, liar)).rejects.toThrow('plants stored')
})

test('a server that ends is noticed, with what it said', async () => {
  const target = { name: 'gone', title: 'Gone', promised: 'nothing kept' as const }
  const command = () => [process.execPath, '-e', 'console.log("no luck"); process.exit(3)'] as const
  const started = startTarget(
    { ...target, command },
    { folder, population: { seed: 1, idBits: 52 }, plants: 0 },
  )
  await expect(started).rejects.toThrow(/ended \(3\).*no luck/s)
})
