import { createClient, createRecorder } from '@plant-store/contract'
import { afterAll, expect, test } from 'vitest'
import { startMemoryService } from './memory-service.ts'

const service = await startMemoryService()
const client = createClient(service, createRecorder(await service.description()))
afterAll(async () => {
  client.close()
  await service[Symbol.asyncDispose]()
})

const { full } = service.tokens
/** What can be wrong with a request, in the order in which it is told: the wrong form, the right one, the answer. */
const faults: readonly (readonly [wrong: Partial<Request>, right: Partial<Request>, told: RegExp])[] = [
  [{ version: '2.0' }, { version: '1.1' }, /^40000 .*version/],
  [{ host: 'host: a b' }, { host: 'host: h' }, /^40007 .*host/],
  [{ expect: 'expect: a miracle' }, { expect: 'x-expect: nothing' }, /^41701 .*miracle/],
  [{ token: 'wrong' }, { token: full }, /^40102 .*unknown/],
  [{ path: '/plants' }, { path: '/plants/1' }, /^40501 .*methods/],
  [{ range: 'content-range: bytes 0-1/2' }, { range: 'x-range: none' }, /^40010 .*Content-Range/],
  [
    { coding: 'content-encoding: gzip' },
    { coding: 'content-encoding: identity' },
    /^41502 .*Content-Encoding/,
  ],
  [{ chunks: 'gzip, chunked' }, { chunks: 'chunked' }, /^41502 .*chunked/],
  [{ type: 'text/plain' }, { type: 'application/json' }, /^41501 .*media type/],
  [{ body: '{' }, { body: '{"id":1,"name":"n"}' }, /^40001 .*JSON/],
]

interface Request {
  version: string
  host: string
  expect: string
  token: string
  path: string
  range: string
  coding: string
  chunks: string
  type: string
  body: string
}

function bytes(request: Request): string {
  const { version, host, expect, token, path, range, coding, chunks, type, body } = request
  const fields = [host, expect, `authorization: Bearer ${token}`, range, coding, `content-type: ${type}`]
  const head = [`PUT ${client.target(path)} HTTP/${version}`, ...fields, `transfer-encoding: ${chunks}`]
  return `${head.join('\r\n')}\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
}

test('of all that is wrong with a request the first is told, in one order', async () => {
  for (let righted = 0; righted < faults.length; righted++) {
    const parts = faults.map(([wrong, right], index) => (index < righted ? right : wrong))
    const request = Object.assign({}, ...parts) as Request
    const answer = await client.exchange(
      { method: 'PUT', target: client.target(request.path) },
      bytes(request),
    )
    const { error, message } = JSON.parse(`${answer.body}`)
    expect(`${error} ${message}`).toMatch(faults[righted]?.[2] as RegExp)
  }
})
