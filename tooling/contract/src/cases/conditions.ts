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
  changes,
  create,
  type Entity,
  ownId,
  toJson,
} from '../contract-case.ts'
import type { Answer } from '../wire.ts'

type Fields = Readonly<Record<string, string>>

/** If-Match and If-None-Match of a request for an item, in which `T` is its tag, `U` that in capitals and `S` an earlier one. */
type Given = readonly [ifMatch: string | undefined, ifNoneMatch?: string]
const holding: readonly Given[] = [
  ...barred(`*| ,,\t"S","T" , ,|W/"T", "a,b", "", "${'x'.repeat(65)}", "\\", "T"`).map(
    only,
  ),
  ['"T"', '"S"'],
]
const failingMatch: readonly Given[] = [
  ...barred('"S"|W/"T"| , ,|"*", "xT"|"Ux"|"not,T"').map(only),
  ['"S"', '"T"'],
]
const passingNoneMatch = barred('W/"S", "", "a,b"|').map(noneOf)
const failingNoneMatch: readonly Given[] = [
  ...barred('W/"T"|*|"S" ,,W/"a" ,"T"').map(noneOf),
  ['"T"', '*'],
]

function only(ifMatch: string): Given {
  return [ifMatch]
}
function noneOf(ifNoneMatch: string): Given {
  return [undefined, ifNoneMatch]
}

const malformed = [
  ...barred(`x|"|"a|"a" "b"|"a"b|"a";|w/"a"|W/|W/ "a"|'a'|*, "a"|"a", *`),
  ...['"a"\u00a0', `${' '.repeat(5_000)}x`, '"'.repeat(5_001)],
]

const race = (change: (n: number) => Promise<Answer>) =>
  Promise.all(Array.from({ length: 20 }, (_, n) => change(n)))

/** Returns the cases of entity tags and conditions of an entity. */
export function conditionCases(entity: Entity): readonly ContractCase[] {
  const { path, errors, members } = entity
  const canReplace = changes(entity, 'PUT')
  const read = (client: Client, id: bigint, headers: Fields = {}, method = 'GET') =>
    client.ask(method, `${path}/${id}`, { headers })
  const replace = (client: Client, id: bigint, headers: Fields = {}, text = 'n') =>
    client.ask('PUT', `${path}/${id}`, { headers, body: toJson(members(text)) })
  const remove = (client: Client, id: bigint, headers: Fields = {}) =>
    client.ask('DELETE', `${path}/${id}`, { headers })
  const itemOf = (id: bigint, text: string) => ({ id, ...members(text) })
  const creating = (client: Client, id: bigint, text: string) =>
    create(client, itemOf(id, text), undefined, entity)
  const assertNone = (client: Client, id: bigint) => assertAbsent(client, id, entity)

  /** Creates an item and changes it once. Returns its tag and the one before. */
  const changed = async (client: Client) => {
    const id = ownId()
    await creating(client, id, 'first')
    const stale = tagOf(await read(client, id))
    if (canReplace) {
      return { id, stale, tag: tagOf(await replace(client, id, {}, 'second')) }
    }
    await remove(client, id)
    await creating(client, id, 'second')
    return { id, stale, tag: tagOf(await read(client, id)) }
  }

  /** Makes each change on a condition, which fails. */
  const assertRefused = async (
    client: Client,
    id: bigint,
    headers: Fields,
    removing = 41201,
  ) => {
    if (canReplace) {
      assertFailure(await replace(client, id, headers, 'third'), 41201)
    }
    assertFailure(await remove(client, id, headers), removing)
  }

  /** Returns the only success among the answers. All others are 412. */
  const onlyWinner = async (
    answers: readonly Answer[],
    ...successes: readonly number[]
  ) => {
    const winners = answers.flatMap(({ status }, n) =>
      successes.includes(status) ? [n] : [],
    )
    assert.equal(winners.length, 1)
    for (const [n, answer] of answers.entries()) {
      if (n !== winners[0]) {
        assertFailure(answer, answer.status === 404 ? errors.missing : 41201)
      }
    }
    return winners[0] as number
  }

  const replacing = casesOf(`replacing in ${path} on a condition`, {
    'answers without a tag if it was not stored as it was sent (RFC 9110, 9.3.4)':
      async client => {
        const id = ownId()
        const put = (body: object) =>
          client.ask('PUT', `${path}/${id}`, { body: toJson(body) })
        assert.equal((await put(itemOf(id, 'n'))).headers.has('etag'), true)
        const answer = await put({ ...members('n'), unheard_of: 3n })
        assertSuccess(answer, members('n'))
        assert.equal(answer.headers.has('etag'), false)
      },

    'creates what does not exist': async client => {
      const id = ownId()
      for (const value of ['*', 'W/"a", "b"']) {
        assertSuccess(await replace(client, id, { 'if-none-match': value }), members('n'))
        assert.equal((await remove(client, id)).status, 204)
      }
    },

    'of twenty racing ones that replace or remove the same state exactly one is made':
      async client => {
        const { id, tag } = await changed(client)
        const headers = { 'if-match': `${tag}, "another"` }
        const answers = await race(n =>
          n % 2 === 0
            ? replace(client, id, headers, `racer ${n}`)
            : remove(client, id, headers),
        )
        const winner = await onlyWinner(answers, 200, 204)
        if (winner % 2 === 0) {
          await assertKept(client, itemOf(id, `racer ${winner}`), entity)
        } else {
          await assertNone(client, id)
        }
      },

    'of twenty racing ones that create exactly one is made': async client => {
      const id = ownId()
      const answers = await race(n =>
        replace(client, id, { 'if-none-match': '*' }, `racer ${n}`),
      )
      const winner = await onlyWinner(answers, 200)
      await assertKept(client, itemOf(id, `racer ${winner}`), entity)
    },
  })

  return [
    ...casesOf(`an entity tag of ${path}`, {
      'a strong one, on GET, HEAD and PUT, and nowhere else': async client => {
        const id = ownId()
        const text = `etag ${id}`
        const created = await client.ask('POST', path, { body: toJson(itemOf(id, text)) })
        const put = canReplace ? [await replace(client, id, {}, text)] : []
        const [get, head] = [await read(client, id), await read(client, id, {}, 'HEAD')]
        assert.match(tagOf(get), /^"[!#-~]+"$/)
        for (const answer of [head, ...put]) {
          assert.equal(tagOf(answer), tagOf(get))
        }
        const list = await client.ask('GET', `${path}?${entity.listOf(text)}`)
        const others = [created, list, await remove(client, id), await read(client, id)]
        assert.deepEqual(
          others.map(({ status, headers }) => [status, headers.has('etag')]),
          [200, 200, 204, 404].map(status => [status, false]),
        )
      },
    }),

    ...casesOf(`a condition of ${path}`, {
      'that holds changes nothing about a read, and lets a change be made':
        async client => {
          for (const given of [...holding, ...passingNoneMatch]) {
            let { id, tag, stale } = await changed(client)
            const answer = await read(client, id, fieldsOf(given, tag, stale))
            assertSuccess(answer, itemOf(id, 'second'))
            assert.equal(tagOf(answer), tag)
            if (canReplace) {
              const replaced = await replace(
                client,
                id,
                fieldsOf(given, tag, stale),
                'third',
              )
              assertSuccess(replaced, members('third'))
              stale = tag
              tag = tagOf(await read(client, id))
              assert.equal(tag, tagOf(replaced))
            }
            assert.equal(
              (await remove(client, id, fieldsOf(given, tag, stale))).status,
              204,
            )
            await assertNone(client, id)
          }
        },

      'that fails is answered with 412, and nothing is changed': async client => {
        const { id, tag, stale } = await changed(client)
        for (const given of failingMatch) {
          const fields = fieldsOf(given, tag, stale)
          assertFailure(await read(client, id, fields), 41201)
          assert.equal((await read(client, id, fields, 'HEAD')).status, 412)
        }
        for (const given of [...failingMatch, ...failingNoneMatch]) {
          await assertRefused(client, id, fieldsOf(given, tag, stale))
        }
        const now = await read(client, id)
        assertSuccess(now, itemOf(id, 'second'))
        assert.equal(tagOf(now), tag)
      },

      'is answered with 304, the tag and no body, when If-None-Match of a read fails':
        async client => {
          const { id, tag, stale } = await changed(client)
          for (const given of failingNoneMatch) {
            for (const method of ['GET', 'HEAD']) {
              const answer = await read(client, id, fieldsOf(given, tag, stale), method)
              assert.deepEqual(
                [answer.status, answer.body.length, tagOf(answer)],
                [304, 0, tag],
              )
              for (const field of [
                'content-type',
                'content-length',
                'transfer-encoding',
              ]) {
                assert.equal(answer.headers.has(field), false, field)
              }
            }
          }
        },

      'on what does not exist leaves it a 404, except for a replacement':
        async client => {
          const id = ownId()
          for (const value of ['*', '"a", W/"b"']) {
            await assertRefused(client, id, { 'if-match': value }, errors.missing)
            for (const field of ['if-match', 'if-none-match']) {
              assertFailure(await read(client, id, { [field]: value }), errors.missing)
            }
            assertFailure(
              await remove(client, id, { 'if-none-match': value }),
              errors.missing,
            )
          }
          await assertNone(client, id)
        },

      'is judged after the rest of the request': async client => {
        const { id, stale } = await changed(client)
        for (const headers of [
          { 'if-match': stale },
          { 'if-none-match': '*' },
          { 'if-match': 'x' },
        ]) {
          assertFailure(await client.ask('DELETE', `${path}/x`, { headers }), 40004)
          assertFailure(
            await client.ask('DELETE', `${path}/${id}`, { headers, token: null }),
            40101,
          )
          if (!canReplace) {
            continue
          }
          const put = (body: string) =>
            client.ask('PUT', `${path}/${id}`, { body, headers })
          assertFailure(await put('{}'), errors.invalid)
          assertFailure(await put('{'), 40001)
        }
      },

      'that is malformed is refused, and never ignored': async client => {
        const { id, tag } = await changed(client)
        for (const value of malformed) {
          for (const field of ['if-match', 'if-none-match']) {
            const headers = { [field]: value }
            const answers = [
              await read(client, id, headers),
              await remove(client, id, headers),
            ]
            if (canReplace) {
              answers.push(await replace(client, id, headers))
            }
            for (const answer of answers) {
              assertFailure(answer, 40011, new RegExp(`^${field} must be`, 'i'))
            }
          }
        }
        assert.equal(tagOf(await read(client, id)), tag)
      },

      'in several lines of a field is one list': async client => {
        const { id, tag, stale } = await changed(client)
        const line = (value: string) => `if-match: ${value}`
        const status = async (...fields: string[]) =>
          (await client.askBare(`GET ${path}/${id}`, fields)).status
        assert.equal(await status(line(stale), line(tag)), 200)
        assert.equal(await status(line(stale), line('"a"')), 412)
        assert.equal(await status(line(tag), line('*')), 400)
      },

      'counts nothing on other operations, nor does one of dates or ranges':
        async client => {
          const item = itemOf(ownId(), 'n')
          const headers = { 'if-match': '"a"', 'if-none-match': '*' }
          assertSuccess(
            await client.ask('POST', path, { body: toJson(item), headers }),
            members('n'),
          )
          assert.equal(
            (await client.ask('GET', `${path}?limit=1`, { headers })).status,
            200,
          )
          const dates = [
            { 'if-modified-since': new Date().toUTCString() },
            { 'if-unmodified-since': new Date(0).toUTCString() },
            { range: 'bytes=0-1', 'if-range': '"a"' },
          ]
          for (const fields of dates) {
            assertSuccess(await read(client, item.id, fields), item)
            if (canReplace) {
              assertSuccess(await replace(client, item.id, fields), members('n'))
            }
          }
          await assertKept(client, item, entity)
        },
    }),

    ...(canReplace ? replacing : []),
  ]
}

function fieldsOf([ifMatch, ifNoneMatch]: Given, tag: string, stale: string): Fields {
  const letters: Fields = {
    T: tag.slice(1, -1),
    U: tag.slice(1, -1).toUpperCase(),
    S: stale.slice(1, -1),
  }
  const filled = (value: string) =>
    value.replaceAll(/[TUS]/g, letter => letters[letter] as string)
  return {
    ...(ifMatch !== undefined && { 'if-match': filled(ifMatch) }),
    ...(ifNoneMatch !== undefined && { 'if-none-match': filled(ifNoneMatch) }),
  }
}

const tagOf = ({ headers }: Answer) =>
  headers.get('etag') ?? assert.fail('there is no ETag')
