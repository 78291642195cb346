import assert from 'node:assert/strict'
import {
  assertAbsent,
  assertFailure,
  assertSuccess,
  type ContractCase,
  ownId,
  plantRequest,
  toJson,
} from '../contract-case.ts'

const clause = 'Decision 4, what does not arrive in time gets 408'

/** For a store that waits a second or less for a request. */
export const timeoutCases: readonly ContractCase[] = [
  {
    clause,
    name: 'a header section that never ends',
    async run(client) {
      for (const start of ['GET /healthz HT', 'GET /healthz HTTP/1.1\r\nhost: h\r\nx: ']) {
        using wire = await client.open()
        wire.send(start)
        const answer = await wire.answer(undefined)
        assertFailure(answer, 40801)
        assert.equal(answer.headers.get('connection'), 'close')
        assert.equal((await wire.closed()).length, 0)
      }
    },
  },
  {
    clause,
    name: 'a body that never ends, by its length and in chunks',
    async run(client) {
      const id = ownId()
      const json = toJson({ id, name: 'n' })
      const asked = { method: 'POST', target: client.target('/plants') }
      for (const request of [
        plantRequest(client, json).subarray(0, -1),
        plantRequest(client, `${json.length.toString(16)}\r\n${json}\r\n`, ['transfer-encoding: chunked']),
      ]) {
        using wire = await client.open()
        wire.send(request)
        assertFailure(await wire.answer(asked), 40801)
        assert.equal((await wire.closed()).length, 0)
      }
      await assertAbsent(client, id)
    },
  },
  {
    clause,
    name: 'a second request that never ends, and the first is answered',
    async run(client) {
      const asked = { method: 'POST', target: client.target('/plants') }
      const id = ownId()
      using wire = await client.open()
      wire.send(plantRequest(client, toJson({ id, name: 'first' })), 'GET /hea')
      assertSuccess(await wire.answer(asked), { name: 'first' })
      assertFailure(await wire.answer(undefined), 40801)
      assert.equal((await wire.closed()).length, 0)
    },
  },
]
