import assert from 'node:assert/strict'
import {
  assertAbsent,
  assertFailure,
  assertKept,
  assertTaken,
  refuses,
} from '../assertions.ts'
import { chunk } from '../client.ts'
import { type ContractCase, casesOf, longestPlant, ownId } from '../contract-case.ts'
import { jsonOf, toJson } from '../exact-json.ts'

export const bodyCases: readonly ContractCase[] = [
  ...casesOf('POST /plants', {
    'answers 200 with name and tag, and no id': async client => {
      const plant = { id: ownId(), name: 'Monstera', tag: '' }

      const answer = await client.post(toJson(plant))

      assert.equal(`${answer.body}`, '{"name":"Monstera","tag":""}')
      assert.deepEqual(
        [answer.status, answer.headers.get('content-type')],
        [200, 'application/json'],
      )
    },

    'answers with a tag only when one was sent': async client => {
      const plant = { id: ownId(), name: 'Monstera' }
      assert.equal(`${(await client.post(toJson(plant))).body}`, '{"name":"Monstera"}')
      await assertKept(client, plant)
    },

    'takes members in any order, with white space and escapes': async client => {
      const id = ownId()
      const name = '"\\ud83c\\udf31\\u00e9\\/\\"\\\\\\u0001"'
      const body = `\r\n\t {"tag" :\n"t"\t,"name":${name}, "i\\u0064"  :  ${id} } \n`
      await assertTaken(client, { id, name: '🌱é/"\\\u0001', tag: 't' }, body)
    },

    'names every field that is wrong, at once': async client => {
      assertFailure(
        await client.post('{"id":"1","name":5,"tag":false}'),
        40002,
        'id',
        'name',
        'tag',
      )
      const missing = await client.post('{}')
      assertFailure(missing, 40002, 'id', 'name')
      assert.doesNotMatch((jsonOf(missing) as { message: string }).message, /\btag\b/)
    },

    'refuses a name or a tag that is no string, and JSON that is no object': refuses(
      id => [
        ...['5', 'null', '{}'].flatMap(value => [
          [`{"id":${id},"name":${value}}`, 40002, 'name'] as const,
          [`{"id":${id},"name":"n","tag":${value}}`, 40002, 'tag'] as const,
        ]),
        ...['null', '1', '""', `[{"id":${id},"name":"n"}]`].map(
          body => [body, 40002] as const,
        ),
      ],
    ),

    'refuses what is no JSON': refuses(id => {
      const valid = `{"id":${id},"name":"n"}`
      return [
        ['', 40001],
        [' ', 40001],
        [valid.slice(0, -1), 40001],
        [`${valid}${valid}`, 40001],
        [valid.replaceAll('"', "'"), 40001],
        ['id=1', 40001],
      ]
    }),

    'refuses no body at all': async client => {
      assertFailure(await client.askBare('POST /plants'), 40001)
    },

    'refuses a member given twice': refuses(id =>
      ['"name":"a"', '"n\\u0061me":"n"', `"id":${id}.0`, '"x":[{"y":{"z":1,"z":1}}]'].map(
        again => [`{"id":${id},"name":"n",${again}}`, 40001, 'Duplicate'],
      ),
    ),
  }),

  ...casesOf('undeclared members are ignored', {
    'and never stored, whatever they are': async client => {
      const id = ownId()
      const more =
        '"x":1e999,"Id":5,"NAME":"N","y":{"id":7,"name":[]},"z":"\\ud800\\u0000","":null'
      await assertTaken(client, { id, name: 'n' }, `{"id":${id},"name":"n",${more}}`)
    },

    'and nothing is inherited from __proto__, constructor and toString': async client => {
      const id = ownId()
      const inherited = `{"__proto__":{"id":${id},"name":"n","tag":"t"},"constructor":{"prototype":{"id":${id}}}}`
      assertFailure(await client.post(inherited), 40002, 'id', 'name')
      const body = `{"id":${id},"__proto__":{"tag":"t"},"name":"n","toString":1,"hasOwnProperty":1}`
      await assertTaken(client, { id, name: 'n' }, body)
    },
  }),

  ...casesOf('no limit but the body limit', {
    'takes a body of exactly that size, and refuses one byte more': async client => {
      await assertTaken(client, longestPlant(client))

      const large = longestPlant(client)
      const tooLarge = `${toJson(large)} `
      assertFailure(await client.postBare(tooLarge), 41301)
      const pieces = [tooLarge.slice(0, 1000), tooLarge.slice(1000), '']
      const chunks = pieces.map(chunk).join('')
      assertFailure(await client.postBare(chunks, ['transfer-encoding: chunked']), 41301)
      await assertAbsent(client, large.id)
    },
  }),
]
