import assert from 'node:assert/strict'
import type { Client } from '../client.ts'
import {
  assertAbsent,
  assertFailure,
  assertKept,
  assertSuccess,
  barred,
  type ContractCase,
  casesOf,
  create,
  ownId,
  toJson,
} from '../contract-case.ts'
import type { Answer } from '../wire.ts'

type Fields = Readonly<Record<string, string>>

/** If-Match and If-None-Match of a request for a plant, in which `T` is its tag, `U` that in capitals and `S` an earlier one. */
type Given = readonly [ifMatch: string | undefined, ifNoneMatch?: string]
const holding: readonly Given[] = [
  ...barred(`"T"|*|"S", "T"| ,,\t"S","T" , ,|W/"T", "T"|"a,b", "", "${'x'.repeat(65)}", "\\", "T"`).map(only),
  ['"T"', '"S"'],
]
const failingMatch: readonly Given[] = [
  ...barred('"S"|W/"T"|""|| , ,|"*", "xT"|"Ux"|"not,T"').map(only),
  ['"S"', '"S"'],
  ['"S"', '"T"'],
]
const passingNoneMatch = barred('"S"|W/"S", "", "a,b"|').map(noneOf)
const failingNoneMatch: readonly Given[] = [
  ...barred('"T"|W/"T"|*|"S" ,,W/"a" ,"T"').map(noneOf),
  ['"T"', '*'],
]

function only(ifMatch: string): Given {
  return [ifMatch]
}
function noneOf(ifNoneMatch: string): Given {
  return [undefined, ifNoneMatch]
}

const malformed = [
  ...barred(`x|"|"a|a"|"a" "b"|"a"b|"a""b"|"a b"|"a";|w/"a"|W/|W /"a"|W/ "a"|'a'|*, "a"|"a", *|**`),
  ...['\u00a0', '"a"\u00a0', `${' '.repeat(5_000)}x`, '"'.repeat(5_001)],
]

const racers = 20
const race = (change: (n: number) => Promise<Answer>) =>
  Promise.all(Array.from({ length: racers }, (_, n) => change(n)))

export const conditionCases: readonly ContractCase[] = [
  ...casesOf('a plant has an entity tag', {
    'a strong one, on GET, HEAD and PUT, and nowhere else': async client => {
      const plant = { id: ownId(), name: 'n', tag: `etag ${ownId()}` }
      const created = await client.post(toJson(plant))
      const put = await client.ask('PUT', `/plants/${plant.id}`, { body: toJson(plant) })
      const [get, head] = [await read(client, plant.id), await client.ask('HEAD', `/plants/${plant.id}`)]
      assert.match(tagOf(put), /^"[!#-~]+"$/)
      assert.deepEqual([tagOf(get), tagOf(head)], [tagOf(put), tagOf(put)])
      const others = [
        created,
        await client.ask('GET', `/plants?tag=${encodeURIComponent(plant.tag)}`),
        await client.ask('DELETE', `/plants/${plant.id}`),
        await read(client, plant.id),
      ]
      assert.deepEqual(
        others.map(({ status, headers }) => [status, headers.has('etag')]),
        [200, 200, 204, 404].map(status => [status, false]),
      )
    },

    'none on the answer to PUT if the plant was not stored as it was sent (RFC 9110, 9.3.4)':
      async client => {
        const id = ownId()
        const put = (body: object) => client.ask('PUT', `/plants/${id}`, { body: toJson(body) })
        assert.equal((await put({ id, name: 'n', tag: 't' })).headers.has('etag'), true)
        const answer = await put({ name: 'n', height: 3n })
        assertSuccess(answer, { name: 'n' })
        assert.equal(answer.headers.has('etag'), false)
      },

    'another one for each state that it was ever in': async client => {
      const id = ownId()
      const tags: string[] = []
      const note = async () => tags.push(tagOf(await read(client, id)))
      for (let n = 0; n < 2; n++) {
        await create(client, { id, name: 'the same' })
        await note()
        for (const name of ['the same', 'the same', 'another', 'the same']) {
          await replace(client, id, {}, name)
          await note()
        }
        await client.ask('DELETE', `/plants/${id}`)
      }
      assert.equal(new Set(tags).size, 10)
    },
  }),

  ...casesOf('a condition of a read', {
    'that holds changes nothing': async client => {
      for (const given of [...holding, ...passingNoneMatch]) {
        const { id, tag, stale } = await changed(client)
        const answer = await read(client, id, fieldsOf(given, tag, stale))
        assertSuccess(answer, { id, name: 'second' })
        assert.equal(tagOf(answer), tag)
      }
    },

    'is answered with 304, the tag and no body, when If-None-Match fails': async client => {
      for (const given of failingNoneMatch) {
        const { id, tag, stale } = await changed(client)
        for (const method of ['GET', 'HEAD']) {
          const answer = await client.ask(method, `/plants/${id}`, { headers: fieldsOf(given, tag, stale) })
          assert.deepEqual([answer.status, answer.body.length, tagOf(answer)], [304, 0, tag])
          for (const field of ['content-type', 'content-length', 'transfer-encoding'])
            assert.equal(answer.headers.has(field), false, field)
        }
      }
    },

    'is answered with 412 when If-Match fails': async client => {
      const { id, tag, stale } = await changed(client)
      for (const given of failingMatch) {
        assertFailure(await read(client, id, fieldsOf(given, tag, stale)), 41201)
        assert.equal(
          (await client.ask('HEAD', `/plants/${id}`, { headers: fieldsOf(given, tag, stale) })).status,
          412,
        )
      }
    },

    'leaves a plant that does not exist a 404': async client => {
      for (const headers of [{ 'if-match': '*' }, { 'if-none-match': '*' }, { 'if-match': '"a"' }])
        assertFailure(await read(client, ownId(), headers), 40402)
    },
  }),

  ...casesOf('a condition of a change', {
    'that holds lets it be made': async client => {
      for (const given of [...holding, ...passingNoneMatch]) {
        const { id, tag, stale } = await changed(client)
        const replaced = await replace(client, id, fieldsOf(given, tag, stale), 'third')
        assertSuccess(replaced, { name: 'third' })
        const now = await read(client, id)
        assertSuccess(now, { id, name: 'third' })
        assert.equal(tagOf(now), tagOf(replaced))
        const removed = await remove(client, id, fieldsOf(given, tagOf(replaced), tag))
        assert.equal(removed.status, 204)
        await assertAbsent(client, id)
      }
    },

    'that fails is answered with 412, and changes nothing': async client => {
      const { id, tag, stale } = await changed(client)
      for (const given of [...failingMatch, ...failingNoneMatch]) {
        assertFailure(await replace(client, id, fieldsOf(given, tag, stale), 'third'), 41201)
        assertFailure(await remove(client, id, fieldsOf(given, tag, stale)), 41201)
      }
      const now = await read(client, id)
      assertSuccess(now, { id, name: 'second' })
      assert.equal(tagOf(now), tag)
    },

    'on a plant that does not exist': async client => {
      const id = ownId()
      for (const value of ['*', '"a"', '"a", "b"', 'W/"a"', '']) {
        assertFailure(await replace(client, id, { 'if-match': value }), 41201)
        assertFailure(await remove(client, id, { 'if-match': value }), 40402)
        assertFailure(await remove(client, id, { 'if-none-match': value }), 40402)
        await assertAbsent(client, id)
      }
      for (const value of ['*', '"a"', 'W/"a", "b"', '']) {
        assertSuccess(await replace(client, id, { 'if-none-match': value }), { name: 'n' })
        assert.equal((await remove(client, id)).status, 204)
      }
    },

    'a tag from before it was removed and created again is stale': async client => {
      const { id, tag } = await changed(client)
      await remove(client, id)
      await create(client, { id, name: 'second' })
      assertFailure(await replace(client, id, { 'if-match': tag }), 41201)
      assertFailure(await remove(client, id, { 'if-match': tag }), 41201)
      assertSuccess(await read(client, id, { 'if-none-match': tag }), { id, name: 'second' })
    },

    'a change that was made is not made again': async client => {
      const { id, tag } = await changed(client)
      assertSuccess(await replace(client, id, { 'if-match': tag }, 'third'), { name: 'third' })
      assertFailure(await replace(client, id, { 'if-match': tag }, 'third'), 41201)
    },

    'is judged after the plant, and its own form too': async client => {
      const { id, stale } = await changed(client)
      for (const headers of [{ 'if-match': stale }, { 'if-none-match': '*' }, { 'if-match': 'x' }]) {
        const put = (body: string) => client.ask('PUT', `/plants/${id}`, { body, headers })
        assertFailure(await put('{"name":5}'), 40002, 'name')
        assertFailure(await put('{'), 40001)
        assertFailure(await client.ask('DELETE', '/plants/x', { headers }), 40004)
        assertFailure(await client.ask('DELETE', `/plants/${id}`, { headers, token: null }), 40101)
      }
    },
  }),

  ...casesOf('conditions', {
    'that are malformed are refused, and never ignored': async client => {
      const { id, tag } = await changed(client)
      for (const value of malformed) {
        for (const field of ['if-match', 'if-none-match']) {
          for (const method of ['GET', 'PUT', 'DELETE']) {
            const body = method === 'PUT' ? '{"name":"third"}' : undefined
            const answer = await client.ask(method, `/plants/${id}`, {
              headers: { [field]: value },
              ...(body !== undefined && { body }),
            })
            assertFailure(answer, 40011, new RegExp(`^${field} must be`, 'i'))
          }
        }
      }
      assert.equal(tagOf(await read(client, id)), tag)
    },

    'in several lines of a field are one list': async client => {
      const { id, tag, stale } = await changed(client)
      const line = (value: string) => `if-match: ${value}`
      const status = async (...fields: string[]) => (await client.askBare(`GET /plants/${id}`, fields)).status
      assert.equal(await status(line(stale), line(tag)), 200)
      assert.equal(await status(line(tag), line(stale)), 200)
      assert.equal(await status(line(stale), line('"a"')), 412)
      assert.equal(await status(line(tag), line('*')), 400)
      assert.equal(await status(line(tag), line('x')), 400)
    },

    'count nothing on other operations, nor do those of dates and ranges': async client => {
      const id = ownId()
      const headers = { 'if-match': '"a"', 'if-none-match': '*' }
      assertSuccess(await client.ask('POST', '/plants', { body: toJson({ id, name: 'n' }), headers }), {
        name: 'n',
      })
      assert.equal((await client.ask('GET', '/plants?limit=1', { headers })).status, 200)
      assert.equal((await client.ask('GET', '/healthz', { headers })).status, 200)
      const dates = [
        { 'if-modified-since': new Date().toUTCString() },
        { 'if-unmodified-since': new Date(0).toUTCString() },
        { range: 'bytes=0-1', 'if-range': '"a"' },
      ]
      for (const fields of dates) {
        assertSuccess(await read(client, id, fields), { id, name: 'n' })
        assertSuccess(await replace(client, id, fields, 'n'), { name: 'n' })
      }
      await assertKept(client, { id, name: 'n' })
    },
  }),

  ...casesOf('of twenty racing changes', {
    'that replace the same state exactly one is made': async client => {
      const { id, tag } = await changed(client)
      const answers = await race(n => replace(client, id, { 'if-match': tag }, `racer ${n}`))
      const winner = await onlyWinner(answers, 200)
      const now = await read(client, id)
      assertSuccess(now, { id, name: `racer ${winner}` })
      assert.equal(tagOf(now), tagOf(answers[winner] as Answer))
    },

    'that remove the same state exactly one is made': async client => {
      const { id, tag } = await changed(client)
      await onlyWinner(await race(() => remove(client, id, { 'if-match': tag })), 204)
      await assertAbsent(client, id)
    },

    'that replace or remove the same state exactly one is made': async client => {
      const { id, tag } = await changed(client)
      const headers = { 'if-match': `${tag}, "another"` }
      const answers = await race(n =>
        n % 2 === 0 ? replace(client, id, headers, `racer ${n}`) : remove(client, id, headers),
      )
      const winner = await onlyWinner(answers, 200, 204)
      if (winner % 2 === 0) await assertKept(client, { id, name: `racer ${winner}` })
      else await assertAbsent(client, id)
    },

    'that create one plant exactly one is made': async client => {
      const id = ownId()
      const answers = await race(n => replace(client, id, { 'if-none-match': '*' }, `racer ${n}`))
      const winner = await onlyWinner(answers, 200)
      await assertKept(client, { id, name: `racer ${winner}` })
    },

    'that replace whatever exists all are made': async client => {
      const { id } = await changed(client)
      const tags = (await race(() => replace(client, id, { 'if-match': '*' }))).map(answer => {
        assertSuccess(answer, { name: 'n' })
        return tagOf(answer)
      })
      assert.equal(new Set(tags).size, racers)
      assert.ok(tags.includes(tagOf(await read(client, id))))
    },
  }),
]

/** Returns the only success among the answers. All others are 412. */
async function onlyWinner(answers: readonly Answer[], ...successes: readonly number[]): Promise<number> {
  const winners = answers.flatMap(({ status }, n) => (successes.includes(status) ? [n] : []))
  assert.equal(winners.length, 1)
  for (const [n, answer] of answers.entries())
    if (n !== winners[0]) assertFailure(answer, answer.status === 404 ? 40402 : 41201)
  return winners[0] as number
}

/** Creates a plant and replaces it once. Returns its tag and the one before. */
async function changed(client: Client) {
  const id = ownId()
  const stale = tagOf(await replace(client, id, {}, 'first'))
  return { id, stale, tag: tagOf(await replace(client, id, {}, 'second')) }
}

function fieldsOf([ifMatch, ifNoneMatch]: Given, tag: string, stale: string): Fields {
  const letters: Fields = { T: tag.slice(1, -1), U: tag.slice(1, -1).toUpperCase(), S: stale.slice(1, -1) }
  const filled = (value: string) => value.replaceAll(/[TUS]/g, letter => letters[letter] as string)
  return {
    ...(ifMatch !== undefined && { 'if-match': filled(ifMatch) }),
    ...(ifNoneMatch !== undefined && { 'if-none-match': filled(ifNoneMatch) }),
  }
}

const tagOf = ({ headers }: Answer) => headers.get('etag') ?? assert.fail('there is no ETag')

const read = (client: Client, id: bigint, headers: Fields = {}) =>
  client.ask('GET', `/plants/${id}`, { headers })

const replace = (client: Client, id: bigint, headers: Fields = {}, name = 'n') =>
  client.ask('PUT', `/plants/${id}`, { headers, body: toJson({ name }) })

const remove = (client: Client, id: bigint, headers: Fields = {}) =>
  client.ask('DELETE', `/plants/${id}`, { headers })
