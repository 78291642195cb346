import { cpSync } from 'node:fs'
import { isInstalled, temporaryFolder } from '@plant-store/harness'
import { needs } from '@plant-store/harness/vitest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contestants, type ours, type Running, start } from '../src/contestants.ts'
import { type Load, measure } from '../src/load.ts'

let peer: Running
beforeAll(async () => {
  peer = await start(
    contestants.find(({ title }) => title.startsWith('Fastify')) as typeof ours,
    500,
  )
})
afterAll(() => peer?.[Symbol.asyncDispose]())

test('a server that ends is noticed, with what it said', async () => {
  const command = () => [process.execPath, import.meta.dirname] as const
  await expect(start({ title: 'Gone', command, environment: {} })).rejects.toThrow(
    /ended \(1\).*Cannot find/s,
  )
})

describe('under the load of wrk', needs('wrk', isInstalled('wrk')), () => {
  const load = (request: Load['request']): Load => ({ request, connections: 8 })

  test.each(['create', '/plants/%s', '/plants?limit=10&after=%s'] as const)(
    '%s is measured',
    async request => {
      const { requests, p50Ms, p99Ms } = await measure(peer, load(request))
      expect(requests).toBeGreaterThan(0)
      expect(p50Ms).toBeGreaterThan(0)
      expect(p99Ms).toBeGreaterThanOrEqual(p50Ms)
    },
  )

  test('an answer that is not 200 fails the run', async () => {
    await expect(measure(peer, load('/plants/%snowhere'))).rejects.toThrow(
      'answers were not 200',
    )
  })

  test('creates that are not in the store fail the run', async () => {
    using folder = temporaryFolder()
    const file = `${folder.path}/another.db`
    cpSync(peer.file, file)
    await expect(measure({ ...peer, file }, load('create'))).rejects.toThrow(
      'and 0 plants stored',
    )
  })
})
