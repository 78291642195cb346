import { startServer } from '@plant-store/harness'
import { expect, test } from 'vitest'

test('a program whose log nobody reads any more stops when it is told to', async () => {
  await using server = await startServer({
    environment: { ACCESS_TOKENS: 'given' },
  })
  server.process.stdout.destroy()
  expect(await server.end()).toBe(0)
})
