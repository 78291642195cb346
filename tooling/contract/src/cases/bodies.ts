import assert from 'node:assert/strict'
import {
  assertAbsent,
  assertFailure,
  assertSuccess,
  type ContractCase,
  create,
  held,
  ownId,
  plantRequest,
  toJson,
} from '../contract-case.ts'

const fixed = 'Fixed, a body of the right types is valid'
const text = 'Decision 2, text is Unicode text'

/** Texts that something between client and disk could want to trim, fold, normalise, escape or cut. */
const texts = [
  '',
  ' ',
  '  leading and trailing\t\r\n',
  'Übergrößenträger ÅÅ',
  'e\u0301 is not \u00e9',
  '\u{1f331}\u{1f468}\u200d\u{1f33e} 𠮷 \u{10ffff}',
  '\u0001\b\f\n\r\t\u001f\u007f\u0085\u2028\u2029\ufeff\ufffd\ufffe\uffff',
  'אבג \u202e العربية ไทย 漢字',
  `'; DROP TABLE plants; -- %_\\" </script> \${x}`,
  'null',
  '__proto__',
  'x'.repeat(100_000),
]

/** Bytes that are no UTF-8, where a decoder would put U+FFFD. */
const brokenUtf8: readonly (readonly [string, readonly number[]])[] = [
  ['a byte that UTF-8 never has', [0xff]],
  ['a continuation byte alone', [0x80]],
  ['a sequence cut short', [0xe2, 0x82]],
  ['an overlong slash', [0xc0, 0xaf]],
  ['an encoded surrogate', [0xed, 0xa0, 0x80]],
  ['a code point above U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
]

const loneSurrogates = ['\\ud800', '\\udc00', '\\udbff\\ud800', 'a\\udc00\\ud800b']

const twice: readonly (readonly [string, string])[] = [
  ['with different values', '"name":"a","name":"b"'],
  ['with equal values', '"name":"a","name":"a"'],
  ['once with its name escaped', '"name":"a","n\\u0061me":"a"'],
  ['that nobody declared', '"name":"a","x":1,"x":1'],
  ['with an empty name', '"name":"a","":1,"":1'],
  ['deep inside one that nobody declared', '"name":"a","x":[{"y":{"z":1,"z":1}}]'],
  ['named __proto__', '"name":"a","__proto__":1,"__proto__":2'],
]

export const bodyCases: readonly ContractCase[] = [
  {
    clause: 'Fixed, POST /plants',
    name: 'answers 200 with name and tag, and no id',
    async run(client) {
      const body = toJson({ id: ownId(), name: 'Monstera', tag: 'climber' })
      const answer = await client.ask('POST', '/plants', { body })
      assert.equal(`${answer.body}`, '{"name":"Monstera","tag":"climber"}')
      assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'application/json'])
    },
  },
  {
    clause: 'Fixed, POST /plants',
    name: 'answers with a tag only when one was sent',
    async run(client) {
      const id = ownId()
      const answer = await client.ask('POST', '/plants', { body: toJson({ id, name: 'Monstera' }) })
      assert.equal(`${answer.body}`, '{"name":"Monstera"}')
      assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: 'Monstera' })
      const empty = await client.ask('POST', '/plants', {
        body: toJson({ id: ownId(), name: 'Monstera', tag: '' }),
      })
      assert.equal(`${empty.body}`, '{"name":"Monstera","tag":""}')
    },
  },
  ...texts.map(
    (each): ContractCase => ({
      clause: fixed,
      name: `keeps ${JSON.stringify(each).slice(0, 60)} as it is, in name and in tag`,
      async run(client) {
        const plants = [
          { id: ownId(), name: each, tag: each },
          { id: ownId(), name: each },
        ]
        for (const plant of plants) {
          await create(client, plant)
          assertSuccess(await client.ask('GET', `/plants/${plant.id}`), plant)
        }
      },
    }),
  ),
  {
    clause: fixed,
    name: 'keeps text that was sent in escapes',
    async run(client) {
      const id = ownId()
      const body = `{"i\\u0064":${id},"name":"\\ud83c\\udf31\\u00e9\\/\\"\\\\\\u0001"}`
      assertSuccess(await client.ask('POST', '/plants', { body }), { name: '🌱é/"\\\u0001' })
      assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: '🌱é/"\\\u0001' })
    },
  },
  {
    clause: fixed,
    name: 'takes members in any order, with any white space between them',
    async run(client) {
      const id = ownId()
      const body = `\r\n\t {"tag" :\n"t"\t,"name":"n", "id"  :  ${id} } \n`
      assertSuccess(await client.ask('POST', '/plants', { body }), { name: 'n', tag: 't' })
      assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: 'n', tag: 't' })
    },
  },
  {
    clause: 'Fixed, failures',
    name: 'names every field that is wrong, at once',
    async run(client) {
      const wrong = await client.ask('POST', '/plants', { body: '{"id":"1","name":5,"tag":false}' })
      assertFailure(wrong, 40002, 'id', 'name', 'tag')
      const missing = await client.ask('POST', '/plants', { body: '{}' })
      assertFailure(missing, 40002, 'id', 'name')
      assert.doesNotMatch((held(missing) as { message: string }).message, /\btag\b/)
    },
  },
  {
    clause: 'Decision 1, no coercion anywhere',
    name: 'refuses a name or a tag that is no string',
    async run(client) {
      const id = ownId()
      for (const value of ['5', 'null', 'true', '["n"]', '{}']) {
        const name = await client.ask('POST', '/plants', { body: `{"id":${id},"name":${value}}` })
        assertFailure(name, 40002, 'name')
        const tag = await client.ask('POST', '/plants', { body: `{"id":${id},"name":"n","tag":${value}}` })
        assertFailure(tag, 40002, 'tag')
      }
      await assertAbsent(client, id)
    },
  },
  {
    clause: 'Decision 4, 40002 is no valid plant',
    name: 'refuses JSON that is no object',
    async run(client) {
      for (const body of ['null', 'true', '1', '""', '[]', '[{"id":1,"name":"n"}]', '9007199254740993']) {
        assertFailure(await client.ask('POST', '/plants', { body }), 40002)
      }
    },
  },
  {
    clause: 'Decision 4, 40001 is no JSON',
    name: 'refuses what is no JSON, and no body at all',
    async run(client) {
      const valid = `{"id":${ownId()},"name":"n"}`
      const broken = [
        '',
        ' ',
        '{',
        valid.slice(0, -1),
        `${valid}}`,
        `${valid}${valid}`,
        `${valid}\u0000`,
        `\u00a0${valid}`,
        valid.replace('}', ',}'),
        valid.replaceAll('"', "'"),
        valid.replace('"n"', '"\t"'),
        valid.replace('"n"', '"\\x41"'),
        valid.replace('"n"', '"n'),
        valid.replace('"name"', 'name'),
        `/* a comment */${valid}`,
        'undefined',
        'id=1&name=n',
      ]
      for (const body of broken) assertFailure(await client.ask('POST', '/plants', { body }), 40001)
      const nothing = await client.exchange(
        { method: 'POST', target: client.target('/plants') },
        `POST ${client.target('/plants')} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${client.store.tokens.full}\r\n\r\n`,
      )
      assertFailure(nothing, 40001)
    },
  },
  ...brokenUtf8.map(
    ([what, bytes]): ContractCase => ({
      clause: text,
      name: `refuses ${what} wherever it is, and replaces nothing`,
      async run(client) {
        const id = ownId()
        const before = [
          `{"id":${id},"name":"`,
          `{"id":${id},"name":"n","tag":"`,
          `{"id":${id},"name":"n","x":"`,
        ]
        for (const start of before) {
          const body = Buffer.concat([Buffer.from(start), Buffer.from(bytes), Buffer.from('"}')])
          assertFailure(await client.ask('POST', '/plants', { body }), 40001, 'UTF-8')
        }
        await assertAbsent(client, id)
      },
    }),
  ),
  {
    clause: text,
    name: 'refuses JSON in another encoding, and a byte order mark',
    async run(client) {
      const json = `{"id":${ownId()},"name":"n"}`
      for (const body of [
        Buffer.from(json, 'utf16le'),
        Buffer.from(`\ufeff${json}`, 'utf16le'),
        `\ufeff${json}`,
      ]) {
        assertFailure(await client.ask('POST', '/plants', { body }), 40001)
      }
    },
  },
  {
    clause: text,
    name: 'refuses a lone surrogate',
    async run(client) {
      const id = ownId()
      for (const each of loneSurrogates) {
        const name = await client.ask('POST', '/plants', { body: `{"id":${id},"name":"${each}"}` })
        assertFailure(name, 40002, 'name')
        const tag = await client.ask('POST', '/plants', { body: `{"id":${id},"name":"n","tag":"a${each}"}` })
        assertFailure(tag, 40002, 'tag')
        const put = await client.ask('PUT', `/plants/${id}`, { body: `{"name":"${each}"}` })
        assertFailure(put, 40002, 'name')
      }
      await assertAbsent(client, id)
    },
  },
  {
    clause: text,
    name: 'refuses U+0000',
    async run(client) {
      const id = ownId()
      const name = await client.ask('POST', '/plants', { body: `{"id":${id},"name":"a\\u0000b"}` })
      assertFailure(name, 40002, 'name')
      const tag = await client.ask('POST', '/plants', { body: `{"id":${id},"name":"n","tag":"\\u0000"}` })
      assertFailure(tag, 40002, 'tag')
      await assertAbsent(client, id)
    },
  },
  ...twice.map(
    ([what, members]): ContractCase => ({
      clause: text,
      name: `refuses a member given twice, ${what}`,
      async run(client) {
        const id = ownId()
        const failure = await client.ask('POST', '/plants', { body: `{"id":${id},${members}}` })
        assertFailure(failure, 40001, 'twice')
        await assertAbsent(client, id)
      },
    }),
  ),
  {
    clause: text,
    name: 'refuses an id given twice, even as the same number',
    async run(client) {
      const id = ownId()
      for (const second of [`${id}`, `${id}.0`, '1']) {
        const failure = await client.ask('POST', '/plants', {
          body: `{"id":${id},"name":"n","id":${second}}`,
        })
        assertFailure(failure, 40001, 'twice')
      }
      await assertAbsent(client, id)
    },
  },
  {
    clause: 'Decision 2, undeclared members are ignored',
    name: 'and never stored, whatever they are',
    async run(client) {
      const id = ownId()
      const more = '"x":1e999,"Id":5,"NAME":"N","y":{"id":7,"name":[]},"z":"\\ud800\\u0000","":null'
      const answer = await client.ask('POST', '/plants', { body: `{"id":${id},"name":"n",${more}}` })
      assertSuccess(answer, { name: 'n' })
      assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: 'n' })
    },
  },
  {
    clause: 'Decision 2, undeclared members are ignored',
    name: '__proto__, constructor and toString too: nothing is inherited from them',
    async run(client) {
      const id = ownId()
      const inherited = `{"__proto__":{"id":${id},"name":"n","tag":"t"},"constructor":{"prototype":{"id":${id}}}}`
      assertFailure(await client.ask('POST', '/plants', { body: inherited }), 40002, 'id', 'name')
      for (const proto of ['{"tag":"t"}', 'null', '5', '"tag"']) {
        const each = ownId()
        const body = `{"id":${each},"__proto__":${proto},"name":"n","toString":1,"hasOwnProperty":1}`
        assertSuccess(await client.ask('POST', '/plants', { body }), { name: 'n' })
        assertSuccess(await client.ask('GET', `/plants/${each}`), { id: each, name: 'n' })
      }
      await assertAbsent(client, id)
    },
  },
  {
    clause: 'Decision 2, undeclared members are ignored',
    name: 'a hundred thousand levels deep too',
    async run(client) {
      for (const [open, close] of [
        ['[', ']'],
        ['{"a":', '}'],
      ] as const) {
        const id = ownId()
        const levels = 100_000
        const innermost = open === '[' ? '' : '1'
        const deep = `${open.repeat(levels)}${innermost}${close.repeat(levels)}`
        const body = `{"x":${deep},"id":${id},"name":"n"}`
        assertSuccess(await client.ask('POST', '/plants', { body }), { name: 'n' })
        assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: 'n' })
      }
    },
  },
  {
    clause: 'Decision 2, no limit but the body limit',
    name: 'takes a body of exactly that size, and refuses one byte more',
    async run(client) {
      const { bodyBytesMax } = client.store
      const bodyOf = (id: bigint, bytes: number) => {
        const around = toJson({ id, name: '' })
        return toJson({ id, name: 'x'.repeat(bytes - around.length) })
      }
      const target = client.target('/plants')
      const [fits, large] = [ownId(), ownId()]
      const body = bodyOf(fits, bodyBytesMax)
      const answer = await client.ask('POST', '/plants', { body })
      assert.equal(answer.status, 200)
      assert.equal(
        (held(answer) as { name: string }).name.length,
        body.length - toJson({ id: fits, name: '' }).length,
      )

      const tooLarge = bodyOf(large, bodyBytesMax + 1)
      const byLength = await client.exchange({ method: 'POST', target }, plantRequest(client, tooLarge))
      assertFailure(byLength, 41301)
      const chunks = [tooLarge.slice(0, 1000), tooLarge.slice(1000)].map(
        chunk => `${chunk.length.toString(16)}\r\n${chunk}\r\n`,
      )
      const chunked = plantRequest(client, `${chunks.join('')}0\r\n\r\n`, ['transfer-encoding: chunked'])
      assertFailure(await client.exchange({ method: 'POST', target }, chunked), 41301)
      await assertAbsent(client, large)
    },
  },
  {
    clause: 'Decision 2, no limit but the body limit',
    name: 'takes a body in chunks',
    async run(client) {
      const id = ownId()
      const json = `{"id":${id},"name":"🌱"}`
      // Byte by byte: a character cut apart by chunks is still one character.
      const chunks = [...Buffer.from(json)].map(byte => Buffer.from([...Buffer.from('1\r\n'), byte, 13, 10]))
      const body = Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])
      const asked = { method: 'POST', target: client.target('/plants') }
      const answer = await client.exchange(asked, plantRequest(client, body, ['transfer-encoding: chunked']))
      assertSuccess(answer, { name: '🌱' })
    },
  },
]
