import type { Gate } from '@plant-store/access'
import { expect, test } from 'vitest'
import { startMemoryService } from './memory-service.ts'

test('a gate sees the token, and the header fields by names in lower case', async () => {
  const seen: unknown[] = []
  const gate: Gate = ({ token, headers }, scope) => {
    seen.push([token, headers['x-tenant'], scope])
    return { name: 'flora' }
  }
  await using service = await startMemoryService({ gate })
  await fetch(`${service.url}/plants`, { headers: { authorization: 'bearer a.b', 'X-Tenant': 'north' } })
  await fetch(`${service.url}/plants/1`, { method: 'DELETE' })
  expect(seen).toEqual([
    ['a.b', 'north', 'plants:read'],
    [undefined, undefined, 'plants:write'],
  ])
})
