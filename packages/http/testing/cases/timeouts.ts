import assert from 'node:assert/strict'
import { assertAbsent, assertFailure, assertSuccess } from '../assertions.ts'
import { bareRequest, type Client, chunk, hostAndToken, plantRequest } from '../client.ts'
import { type ContractCase, casesForEach, casesOf, ownId } from '../contract-case.ts'
import { toJson } from '../exact-json.ts'

const clause = 'what does not arrive in time gets 408'

/** The cases of a store with a request timeout of at most one second. */
export const timeoutCases: readonly ContractCase[] = [
  ...casesForEach(
    clause,
    ['GET /healthz HT', 'GET /healthz HTTP/1.1\r\nhost: h\r\nx: '],
    start => `a header section that never ends: ${JSON.stringify(start)}`,
    async (client, start) => {
      using wire = await client.open()
      wire.send(start)

      const answer = await wire.answer(undefined)

      assertFailure(answer, 40801)
      assert.equal(answer.headers.get('connection'), 'close')
      assert.equal((await wire.closed()).length, 0)
    },
  ),

  ...casesOf(clause, {
    'a body that never reaches its length': async client => {
      const plant = { id: ownId(), name: 'n' }
      const request = plantRequest(client, toJson(plant)).subarray(0, -1)

      await assertTimesOut(client, request)

      await assertAbsent(client, plant.id)
    },

    'a second request that never ends, and the first is answered': async client => {
      const first = plantRequest(client, toJson({ id: ownId(), name: 'first' }))
      using wire = await client.open()
      wire.send(first, 'GET /hea')

      assertSuccess(await wire.answer(client.asked('POST /plants')), { name: 'first' })
      assertFailure(await wire.answer(undefined), 40801)
      assert.equal((await wire.closed()).length, 0)
    },

    'a line of a batch that never ends, on a connection that sends': async client => {
      const { asked, head, line } = batchOf(client)
      using wire = await client.open()
      wire.send(head, line())

      const answering = wire.answer(asked)
      const sending = setInterval(() => wire.send(chunk(' ')), 50)
      const answer = await answering.finally(() => clearInterval(sending))

      assertFailure(answer, 40801, 'line')
      assert.equal((await wire.closed()).length, 0)
    },
  }),
]

/** Returns the head of a batch in chunks, and its lines. */
function batchOf(client: Client) {
  const asked = client.asked('POST /plants/batch')
  const fields = [
    ...hostAndToken(client),
    'content-type: application/x-ndjson',
    'transfer-encoding: chunked',
  ]
  return {
    asked,
    head: bareRequest(asked, fields),
    line: () => chunk(`${toJson({ id: ownId(), name: 'n' })}\n`),
  }
}

async function assertTimesOut(client: Client, request: Buffer): Promise<void> {
  using wire = await client.open()
  wire.send(request)

  assertFailure(await wire.answer(client.asked('POST /plants')), 40801)
  assert.equal((await wire.closed()).length, 0)
}
