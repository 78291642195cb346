import { assertSuccess, createClient, createRecorder, toJson } from '@plant-store/contract'
import { startServer } from '@plant-store/harness'
import { expect, test } from 'vitest'
import { prepareDatabase } from './database.ts'

test('what was answered is stored after the process was killed in the middle of its work', async () => {
  await using database = await prepareDatabase()
  const answered: { id: bigint; name: string; tag: string }[] = []
  const unanswered: { id: bigint; name: string; tag: string }[] = []

  await using first = await startServer({ databaseUrl: database.url, environment: { HTTP_THREADS: '2' } })
  const recorder = createRecorder(await (await fetch(`${first.url}/openapi.json`)).text())
  const before = createClient({ url: first.url, tokens: database.tokens }, recorder)
  let lastId = 0n
  let killed: Promise<unknown> | undefined
  const work = async () => {
    while (killed === undefined) {
      lastId += 1n
      const plant = { id: lastId, name: `plant ${lastId}`, tag: 'x'.repeat(Number(lastId % 7n) * 200) }
      try {
        const { status } = await before.ask('POST', '/plants', { body: toJson(plant) })
        if (status === 200) answered.push(plant)
      } catch {
        // The connection was cut before the answer: the plant may be there or not, but not in part.
        unanswered.push(plant)
      }
      if (answered.length >= 400) killed ??= first.end('SIGKILL')
    }
  }
  await Promise.all(Array.from({ length: 40 }, work))
  expect(await killed).toBe('SIGKILL')
  before.close()

  await using second = await startServer({ databaseUrl: database.url })
  const after = createClient({ url: second.url, tokens: database.tokens }, recorder)
  for (const plant of answered) assertSuccess(await after.ask('GET', `/plants/${plant.id}`), plant)
  for (const plant of unanswered) {
    const answer = await after.ask('GET', `/plants/${plant.id}`)
    if (answer.status !== 404) assertSuccess(answer, plant)
  }
  expect(answered.length).toBeGreaterThanOrEqual(400)
  expect(answered.length + unanswered.length).toBe(Number(lastId))
  after.close()
})
