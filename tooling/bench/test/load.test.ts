import { spawnSync } from 'node:child_process'
import { temporaryFolder } from '@plant-store/harness'
import { needs } from '@plant-store/harness/vitest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { creators, onNode, type Running, start, storeInFile, tryOut } from '../src/contestants.ts'
import { type Load, measure } from '../src/load.ts'

const folder = temporaryFolder()
let peer: Running

beforeAll(async () => {
  const contestant = creators.find(({ title }) => title === 'Fastify + better-sqlite3, NORMAL')
  if (!contestant) throw new Error('no such peer')
  peer = await start(contestant, await storeInFile(folder.path, 500), folder.path)
})

afterAll(async () => {
  await peer?.[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

test('a peer answers as ours would', () => tryOut(peer))

test('a server that ends is noticed, with what it said', async () => {
  const command = () => [process.execPath, '--no-luck', '/dev/null'] as const
  const started = start({ title: 'Gone', promised: 'durable', command }, peer.store, folder.path)
  await expect(started).rejects.toThrow(/ended \(9\).*no-luck/s)
})

describe('under the load of wrk', needs('wrk', spawnSync('wrk').error === undefined), () => {
  const load = (request: Load['request']): Load => ({ title: 'test', request, connections: 8 })

  test.each(['create', '/plants/%s', '/plants?limit=10&after=%s'] as const)(
    '%s is measured',
    async request => {
      const { requests, p50Ms, p99Ms } = await measure(peer, load(request), 1)
      expect(requests).toBeGreaterThan(0)
      expect(p50Ms).toBeGreaterThan(0)
      expect(p99Ms).toBeGreaterThanOrEqual(p50Ms)
    },
  )

  test('an answer that is not 200 fails the run', async () => {
    await expect(measure(peer, load('/plants/%snowhere'), 1)).rejects.toThrow('answers were not 200')
  })

  test('creates that are not in the store fail the run', async () => {
    const liar = { title: 'Liar', promised: 'durable', command: onNode('node-http.ts') } as const
    await using running = await start(liar, peer.store, folder.path)
    await expect(measure(running, load('create'), 1)).rejects.toThrow('and 0 plants stored')
  })
})
