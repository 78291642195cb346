import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import { bareRequest, chunk, hostAndToken, plantRequest } from '../client.ts'
import {
  assertAbsent,
  assertFailure,
  assertSuccess,
  type ContractCase,
  casesOf,
  ownId,
  toJson,
} from '../contract-case.ts'

/** The cases of a store with a request timeout of at most one second. */
export const timeoutCases: readonly ContractCase[] = casesOf(
  'what does not arrive in time gets 408',
  {
    'a header section that never ends': async client => {
      for (const start of [
        'GET /healthz HT',
        'GET /healthz HTTP/1.1\r\nhost: h\r\nx: ',
      ]) {
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

    'a line of a batch that never ends; one that goes on is not late, however long it takes':
      async client => {
        const asked = client.asked('POST /plants/batch')
        const fields = [...hostAndToken(client), 'content-type: application/x-ndjson']
        const head = bareRequest(asked, [...fields, 'transfer-encoding: chunked'])
        const line = () => chunk(`${toJson({ id: ownId(), name: 'n' })}\n`)
        for (let attempt = 1; ; attempt++) {
          using wire = await client.open()
          wire.send(head)
          let longestPauseMs = 0
          // Longer in total than a request may take.
          for (let count = 0; count < 8; count++) {
            wire.send(line())
            const sentAtMs = performance.now()
            await setTimeout(200)
            longestPauseMs = Math.max(longestPauseMs, performance.now() - sentAtMs)
          }
          wire.send(chunk(''))
          const answer = await wire.answer(asked)
          // A machine so busy that this client pauses twice as long as it means to says
          // nothing about the store.
          if (answer.status === 408 && longestPauseMs > 400 && attempt < 5) {
            continue
          }
          assertSuccess(answer, { created: 8n, existing: 0n, refused: 0n, faults: [] })
          // The connection has a timeout again.
          wire.send('GET /hea')
          assertFailure(await wire.answer(undefined), 40801)
          break
        }

        using slow = await client.open()
        slow.send(head, line())
        const ended = slow.answer(asked)
        const sending = setInterval(() => slow.send(chunk(' ')), 50)
        try {
          assertFailure(await ended, 40801, 'line')
        } finally {
          clearInterval(sending)
        }
        assert.equal((await slow.closed()).length, 0)
      },
  },
)
