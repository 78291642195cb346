import { isInstalled } from '@plant-store/harness'
import { needs } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { contestants, start } from '../src/contestants.ts'
import { measure } from '../src/load.ts'

const wrk = needs('wrk', isInstalled('wrk'))
const [, fastify] = contestants

test('an answer that is not 200 fails the run', wrk, async () => {
  await using peer = await start(fastify, 1)

  const measuring = measure(peer, '/nowhere', 8)

  await expect(measuring).rejects.toThrow('answers were not 200')
})

test('creates that are not in the store fail the run', wrk, async () => {
  await using peer = await start(fastify)
  await using another = await start(fastify)

  const measuring = measure({ ...peer, file: another.file }, 'create', 8)

  await expect(measuring).rejects.toThrow('and 0 plants stored')
})
