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

describe('under the load of wrk', needs('wrk', isInstalled('wrk')), () => {
  const load = (request: Load['request']): Load => ({ request, connections: 8 })

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
