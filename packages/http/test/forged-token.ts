import { startMemoryService } from './memory-service.ts'

/** Says how requests with a token that nobody was given are answered, and one with a good token. */
await using service = await startMemoryService()
const ask = async (method: string, path: string, token: string) => {
  const { status } = await fetch(`${service.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(method === 'POST' && { body: '{"id": 1, "name": "Ficus"}' }),
  })
  return status
}
const forged = [
  await ask('POST', '/plants', 'forged'),
  await ask('GET', '/plants/1', 'forged'),
  await ask('DELETE', '/plants/1', 'forged'),
  await ask('GET', '/metrics', 'forged'),
]
console.log(JSON.stringify({ forged, good: await ask('GET', '/plants', service.tokens.full) }))
