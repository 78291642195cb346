import assert from 'node:assert/strict'
import {
  assertAbsent,
  assertFailure,
  assertSuccess,
  type ContractCase,
  casesOf,
  ownId,
  toJson,
} from '../contract-case.ts'
import { chunk, plantRequest } from '../requests.ts'

/** For a store that waits a second or less for a request. */
export const timeoutCases: readonly ContractCase[] = casesOf('what does not arrive in time gets 408', {
  'a header section that never ends': async client => {
    for (const start of ['GET /healthz HT', 'GET /healthz HTTP/1.1\r\nhost: h\r\nx: ']) {
      using wire = await client.open()
      wire.send(start)
      const answer = await wire.answer(undefined)
      assertFailure(answer, 40801)
      assert.equal(answer.headers.get('connection'), 'close')
      assert.equal((await wire.closed()).length, 0)
    }
  },

  'a body that never ends, by its length and in chunks': async client => {
    const id = ownId()
    const json = toJson({ id, name: 'n' })
    for (const request of [
      plantRequest(client, json).subarray(0, -1),
      plantRequest(client, chunk(json), ['transfer-encoding: chunked']),
    ]) {
      using wire = await client.open()
      wire.send(request)
      assertFailure(await wire.answer(client.asked('POST /plants')), 40801)
      assert.equal((await wire.closed()).length, 0)
    }
    await assertAbsent(client, id)
  },

  'a second request that never ends, and the first is answered': async client => {
    using wire = await client.open()
    wire.send(plantRequest(client, toJson({ id: ownId(), name: 'first' })), 'GET /hea')
    assertSuccess(await wire.answer(client.asked('POST /plants')), { name: 'first' })
    assertFailure(await wire.answer(undefined), 40801)
    assert.equal((await wire.closed()).length, 0)
  },
})
