import assert from 'node:assert/strict'
import { assertAbsent, assertFailure, assertSuccess } from '../assertions.ts'
import { bareRequest, hostAndToken } from '../client.ts'
import { type ContractCase, casesForEach, casesOf, ownId } from '../contract-case.ts'
import { toJson } from '../exact-json.ts'
import type { Answer, Asked } from '../wire.ts'

const realm = 'Bearer realm="plant-store"'
const invalidToken = /^Bearer realm="plant-store", error="invalid_token"/

/** A text that is almost a token. */
interface ChangedToken {
  readonly why: string
  readonly change: (token: string) => string
}

const changedTokens: readonly ChangedToken[] = [
  { why: 'its last character is missing', change: token => token.slice(0, -1) },
  { why: 'it is in upper case', change: token => token.toUpperCase() },
]

const malformedTokens: readonly ChangedToken[] = [
  { why: 'a whole field', change: token => `Bearer ${token}` },
  { why: 'in quotes', change: token => `"${token}"` },
  { why: 'in angle brackets', change: token => `<${token}>` },
  { why: 'padded in the middle', change: token => `a=.${token}` },
]

export const accessCases: readonly ContractCase[] = [
  ...casesOf('RFC 6750', {
    'the scheme is taken in any case, and another scheme is no token': async client => {
      const { full } = client.store.tokens
      const ask = (path: string, authorization: string) =>
        client.ask('GET', path, { token: null, headers: { authorization } })

      const usual = await ask('/plants?tag=none%20such', `Bearer ${full}`)
      const mixed = await ask('/plants?tag=none%20such', `bEaReR ${full}`)

      assertSuccess(usual, [])
      assertSuccess(mixed, [])
      const refused = [`Basic bearer ${full}`, full, 'Bearer', `Bearer${full}`]
      for (const authorization of refused) {
        const answer = await ask('/plants', authorization)
        assertFailure(answer, 40101, 'Authorization must be "Bearer", a space')
        assert.equal(challengeOf(answer), realm, authorization)
      }
    },

    'a token stands only in the header field': async client => {
      const { full } = client.store.tokens

      const inQuery = await client.ask('GET', `/plants?access_token=${full}`, {
        token: null,
      })
      const inForm = await client.ask('POST', '/plants', {
        token: null,
        body: `access_token=${full}`,
      })

      assertFailure(inQuery, 40101)
      assertFailure(inForm, 40101)
    },

    'an expired token is an invalid one': async client => {
      const answer = await client.ask('GET', '/plants', {
        token: client.store.tokens.expired,
      })
      assertFailure(answer, 40102, 'expired')
      assert.match(challengeOf(answer), invalidToken)
    },

    'a token that only writes creates and removes': async client => {
      const { writeOnly: token } = client.store.tokens
      const plant = { id: ownId(), name: 'written' }

      const created = await client.ask('POST', '/plants', { token, body: toJson(plant) })
      const removed = await client.ask('DELETE', `/plants/${plant.id}`, { token })

      assertSuccess(created, { name: 'written' })
      assert.equal(removed.status, 204, `${removed.body}`)
    },
  }),

  ...casesForEach(
    'RFC 6750',
    changedTokens,
    ({ why }) => `a token must be it to the letter: ${why}`,
    async (client, { change }) => {
      const { full } = client.store.tokens

      const answer = await client.ask('GET', '/plants', { token: change(full) })

      const printed = `${answer.body}${[...answer.headers.values()]}`
      assertFailure(answer, 40102)
      assert.match(challengeOf(answer), invalidToken)
      assert.doesNotMatch(printed, new RegExp(full.slice(0, -1)))
    },
  ),

  ...casesForEach(
    'RFC 6750',
    malformedTokens,
    ({ why }) => `a token that is ${why} gets the form of the header field`,
    async (client, { change }) => {
      const token = change(client.store.tokens.full)

      const answer = await client.ask('GET', '/plants', { token })

      assertFailure(answer, 40102, 'access token, with "=" only at its end')
      assert.match(challengeOf(answer), invalidToken)
    },
  ),

  ...casesForEach(
    'authentication comes first',
    ['content-length: 99999999999', 'transfer-encoding: chunked'],
    length => `401 before the body is read, without a 100: ${length}`,
    async (client, length) => {
      const asked = client.asked('POST /plants')
      const fields = ['host: h', length, 'expect: 100-continue']

      // The body never arrives. A server that waited for it would not answer.
      const answer = await client.exchange(asked, postHead(asked, fields))

      assertFailure(answer, 40101)
      assert.deepEqual(answer.interim, [])
    },
  ),

  ...casesOf('authentication comes first', {
    'a body expected with a token gets 100, then its answer': async client => {
      const asked = client.asked('POST /plants')
      const id = ownId()
      const body = toJson({ id, name: 'expected' })
      const fields = [...hostAndToken(client), 'Expect: 100-Continue']

      using wire = await client.open()
      wire.send(postHead(asked, [...fields, `content-length: ${body.length}`]))
      assert.equal(await wire.interim(), 100)
      await assertAbsent(client, id)
      wire.send(body)

      assertSuccess(await wire.answer(asked), { name: 'expected' })
    },
  }),
]

function challengeOf({ headers }: Answer): string {
  return headers.get('www-authenticate') ?? 'none'
}

/** Returns the bytes before a body of JSON. */
function postHead(asked: Asked, fields: readonly string[]): string {
  return bareRequest(asked, [...fields, 'content-type: application/json'])
}
