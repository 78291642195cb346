import assert from 'node:assert/strict'
import type { Client } from '../client.ts'
import {
  assertAbsent,
  assertFailure,
  assertSuccess,
  bareRequest,
  type ContractCase,
  create,
  free,
  held,
  ownId,
  toJson,
} from '../contract-case.ts'
import type { Answer } from '../wire.ts'

const taken = 'Decision 3, a repeated id is refused'
const list = 'Decision 7, GET /plants'
const replace = 'Decision 7, PUT /plants/{id}'
const remove = 'Decision 7, DELETE /plants/{id}'

const racers = 50
const rounds = 5

/** Tags that mean something in a URL, a header field or a LIKE. */
const awkwardTags = [
  'two words',
  'a&b=c',
  'a+b',
  '100%',
  '%25',
  '🌱 été',
  `<>;,"'\\`,
  '?#/..',
  'a\r\nb\t',
  '_',
  '\u00a0 \u00a0',
  '\u202e',
  'x'.repeat(2_000),
]

export const operationCases: readonly ContractCase[] = [
  {
    clause: taken,
    name: 'even with the same body, and the plant stays as it was',
    async run(client) {
      const plant = { id: ownId(), name: 'first', tag: 'kept' }
      await create(client, plant)
      for (const body of [
        toJson(plant),
        toJson({ ...plant, name: 'second' }),
        toJson({ id: plant.id, name: '' }),
      ]) {
        assertFailure(await client.ask('POST', '/plants', { body }), 40003, `${plant.id}`)
        assertSuccess(await client.ask('GET', `/plants/${plant.id}`), plant)
      }
      const otherDigits = `{"id":${plant.id}.0e0,"name":"second"}`
      assertFailure(await client.ask('POST', '/plants', { body: otherDigits }), 40003)
    },
  },
  {
    clause: taken,
    name: `of ${racers} clients racing for one id exactly one gets 200, and its plant is the one stored`,
    async run(client) {
      for (let round = 0; round < rounds; round++) {
        const id = ownId()
        const names = Array.from({ length: racers }, (_, n) => `racer ${n} of round ${round}`)
        const wires = await Promise.all(names.map(() => client.open()))
        const asked = { method: 'POST', target: client.target('/plants') }
        const answers = await Promise.all(
          wires.map(async (wire, n) => {
            const body = toJson({ id, name: names[n] })
            const fields = [
              'host: h',
              `authorization: Bearer ${client.store.tokens.full}`,
              'content-type: application/json',
              `content-length: ${body.length}`,
            ]
            wire.send(`POST ${asked.target} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n${body}`)
            return wire.answer(asked)
          }),
        )
        for (const wire of wires) wire[Symbol.dispose]()

        const winners = names.filter((_, n) => answers[n]?.status === 200)
        assert.equal(winners.length, 1)
        for (const answer of answers) {
          if (answer.status === 200) assertSuccess(answer, { name: winners[0] })
          else assertFailure(answer, 40003)
        }
        assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: winners[0] })
      }
    },
  },
  {
    clause: 'Decision 7, GET /plants/{id}',
    name: 'answers 200 with id, name and tag, or 404',
    async run(client) {
      const plant = { id: ownId(), name: 'Monstera', tag: 'climber' }
      await create(client, plant)
      const read = await client.ask('GET', `/plants/${plant.id}`)
      assert.equal(`${read.body}`, `{"id":${plant.id},"name":"Monstera","tag":"climber"}`)
      assertFailure(await client.ask('GET', `/plants/${ownId()}`), 40402)
    },
  },
  {
    clause: list,
    name: 'gives 100 plants a page unless asked otherwise, in id order, with no counts',
    async run(client) {
      const tag = 'a hundred and one'
      const plants = Array.from({ length: 101 }, (_, n) => ({ id: ownId(), name: `${n}`, tag }))
      await Promise.all(plants.toReversed().map(plant => create(client, plant)))
      const first = await client.ask('GET', `/plants?tag=${encodeURIComponent(tag)}`)
      assertSuccess(first, plants.slice(0, 100))
      const whole = await client.ask('GET', `/plants?limit=101&tag=${encodeURIComponent(tag)}`)
      assertSuccess(whole, plants)
      assert.equal(whole.headers.has('link'), false)
      assert.deepEqual(held(await follow(client, first)), plants.slice(100))
      for (const answer of [first, whole]) {
        for (const name of answer.headers.keys()) assert.doesNotMatch(name, /count|total/)
      }
    },
  },
  {
    clause: list,
    name: 'reaches every plant once by its links, with positive and negative ids and whatever the limit',
    async run(client) {
      const tag = 'every plant once'
      const ids = [-7_000_003n, -7_000_002n, -7_000_001n, -7n, 7_000_001n, 7_000_002n, 7_000_003n]
      await free(client, ids)
      for (const id of ids) await create(client, { id, name: 'n', tag })
      for (const limit of [1, 2, 3, 6, 7, 8]) {
        const pages = await allPages(client, `/plants?limit=${limit}&tag=${encodeURIComponent(tag)}`)
        assert.deepEqual(
          pages.flat().map(({ id }) => id),
          ids,
        )
        assert.equal(pages.length, Math.ceil(ids.length / limit))
      }
      // Without a tag there are the plants of other cases too; from one id to another there are these.
      const [first, last] = [await client.ask('GET', '/plants?limit=2&after=-7000004'), ids.slice(0, 2)]
      assert.deepEqual(
        (held(first) as { id: bigint }[]).map(({ id }) => id),
        last,
      )
      const second = held(await follow(client, first)) as { id: bigint }[]
      assert.equal(second[0]?.id, -7_000_001n)
    },
  },
  ...awkwardTags.map(
    (tag): ContractCase => ({
      clause: list,
      name: `narrows to the tag ${JSON.stringify(tag).slice(0, 30)}, and keeps to it from page to page`,
      async run(client) {
        const plants = Array.from({ length: 5 }, (_, n) => ({ id: ownId(), name: `${n}`, tag }))
        for (const plant of plants) await create(client, plant)
        for (const other of [`${tag}x`, '', tag.slice(0, -1)])
          await create(client, { id: ownId(), name: 'o', tag: other })
        const pages = await allPages(client, `/plants?limit=2&tag=${encodeURIComponent(tag)}`)
        assert.deepEqual(
          pages.map(page => page.length),
          [2, 2, 1],
        )
        assert.deepEqual(pages.flat(), plants)
        // As a form and URLSearchParams write it.
        assertSuccess(await client.ask('GET', `/plants?${new URLSearchParams({ tag })}`), plants)
        await free(
          client,
          plants.map(({ id }) => id),
        )
      },
    }),
  ),
  {
    clause: list,
    name: 'links to a page only when a request can carry the link, and says so otherwise',
    async run(client) {
      const answers = { followed: 0, refused: 0 }
      const { headerBytesMax } = client.store
      const follows = async (tag: string, written: string) => {
        const plants = Array.from({ length: 2 }, (_, n) => ({ id: ownId(), name: `${n}`, tag }))
        for (const plant of plants) await create(client, plant)
        const first = await client.ask('GET', `/plants?limit=1&tag=${written}`)
        if (first.status === 200) {
          assert.deepEqual(held(await follow(client, first)), plants.slice(1))
          answers.followed++
        } else {
          assertFailure(first, 43101)
          if (/next page/.test(`${first.body}`)) answers.refused++
        }
        await free(
          client,
          plants.map(({ id }) => id),
        )
      }
      for (let left = 1_400; left > 0; left -= 100) {
        const tag = 'x'.repeat(headerBytesMax - left)
        await follows(tag, tag)
      }
      assert.ok(answers.followed > 1 && answers.refused > 1, JSON.stringify(answers))
      // A space is one character to a form, and three to a link.
      answers.refused = 0
      await follows(' '.repeat(headerBytesMax / 2), '+'.repeat(headerBytesMax / 2))
      assert.equal(answers.refused, 1)
    },
  },
  {
    clause: list,
    name: 'tells an empty tag from none',
    async run(client) {
      const [none, empty] = [ownId(), ownId()]
      await create(client, { id: none, name: 'n' })
      await create(client, { id: empty, name: 'n', tag: '' })
      const answer = await client.ask('GET', `/plants?limit=2&after=${none - 1n}`)
      assertSuccess(answer, [
        { id: none, name: 'n' },
        { id: empty, name: 'n', tag: '' },
      ])
      const tagged = held(await client.ask('GET', `/plants?tag=&after=${none - 1n}`)) as { id: bigint }[]
      assert.ok(tagged.some(({ id }) => id === empty))
      assert.ok(!tagged.some(({ id }) => id === none))
    },
  },
  {
    clause: list,
    name: 'refuses a query that has no valid value, naming each parameter',
    async run(client) {
      const wrongLimits = [
        '0',
        '-1',
        '1001',
        '1.5',
        '1e2',
        '+5',
        '05',
        '0x5',
        'x',
        '',
        '9999999999999999999999',
      ]
      for (const limit of wrongLimits) {
        assertFailure(await client.ask('GET', `/plants?limit=${encodeURIComponent(limit)}`), 40005, 'limit')
      }
      for (const after of ['x', '', '1.5', '9223372036854775808', '-9223372036854775809', '00']) {
        assertFailure(await client.ask('GET', `/plants?after=${after}`), 40005, 'after')
      }
      assertFailure(await client.ask('GET', '/plants?tag=%00'), 40005, 'tag')
      assertFailure(
        await client.ask('GET', '/plants?limit=0&after=x&tag=%00'),
        40005,
        'limit',
        'after',
        'tag',
      )
      for (const limit of [1, 1000]) {
        assert.equal((await client.ask('GET', `/plants?limit=${limit}&tag=none%20such`)).status, 200)
      }
    },
  },
  {
    clause: list,
    name: 'takes the ends of int64 for after',
    async run(client) {
      assertSuccess(await client.ask('GET', '/plants?after=9223372036854775807'), [])
      await free(client, [-(2n ** 63n), 2n ** 63n - 1n])
      for (const id of [-(2n ** 63n), 2n ** 63n - 1n]) await create(client, { id, name: 'n', tag: 'ends' })
      const ends = async (after: string) =>
        (held(await client.ask('GET', `/plants?tag=ends&after=${after}`)) as { id: bigint }[]).map(
          ({ id }) => id,
        )
      assert.deepEqual(await ends('-9223372036854775808'), [2n ** 63n - 1n])
      assert.deepEqual(await ends('9223372036854775806'), [2n ** 63n - 1n])
      assert.deepEqual(await ends('9223372036854775807'), [])
      await free(client, [-(2n ** 63n), 2n ** 63n - 1n])
    },
  },
  {
    clause: list,
    name: 'ignores parameters that nobody declared, and refuses one that is given twice or wrongly encoded',
    async run(client) {
      assertSuccess(await client.ask('GET', '/plants?x=1&x=2&Limit=0&tag=none%20such&__proto__=1'), [])
      assertFailure(await client.ask('GET', '/plants?limit=1&limit=1'), 40009, 'limit')
      assertFailure(await client.ask('GET', '/plants?limit=1&limit=2'), 40009, 'limit')
      assertFailure(await client.ask('GET', '/plants?after=1&after='), 40009, 'after')
      assertFailure(await client.ask('GET', '/plants?tag=a&t%61g=a'), 40009, 'tag')
      for (const tag of ['%', '%4', '%zz', '%ff', '%c3', '%ed%a0%80', '%c0%af']) {
        assertFailure(await client.ask('GET', `/plants?tag=${tag}`), 40006)
      }
    },
  },
  {
    clause: replace,
    name: 'creates, replaces, and doing it twice is doing it once',
    async run(client) {
      const id = ownId()
      const put = (body: string) => client.ask('PUT', `/plants/${id}`, { body })
      const first = await put('{"name":"first","tag":"t"}')
      assert.equal(`${first.body}`, '{"name":"first","tag":"t"}')
      assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: 'first', tag: 't' })
      for (let n = 0; n < 2; n++) {
        assertSuccess(await put('{"name":"second"}'), { name: 'second' })
        assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: 'second' })
      }
      const again = await client.ask('POST', '/plants', { body: toJson({ id, name: 'third' }) })
      assertFailure(again, 40003)
    },
  },
  {
    clause: replace,
    name: 'refuses Content-Range: a part is not the plant (RFC 9110, 14.5)',
    async run(client) {
      const plant = { id: ownId(), name: 'whole', tag: 't' }
      await create(client, plant)
      for (const range of ['bytes 0-4/9', 'bytes */9', 'plants 1-2/3', '']) {
        const headers = { 'content-range': range }
        const answer = await client.ask('PUT', `/plants/${plant.id}`, { body: '{"name":"part"}', headers })
        assertFailure(answer, 40010, 'Content-Range')
      }
      assertSuccess(await client.ask('GET', `/plants/${plant.id}`), plant)
    },
  },
  {
    clause: replace,
    name: 'takes an id in the body only when it is the one in the path',
    async run(client) {
      for (const id of [ownId(), 2n ** 53n + 1n, -(2n ** 63n)]) {
        const put = (given: string) =>
          client.ask('PUT', `/plants/${id}`, { body: `{"id":${given},"name":"n"}` })
        for (const other of [`${id + 1n}`, `"${id}"`, 'null', `${id}.5`]) {
          assertFailure(await put(other), 40002, 'id')
        }
        await assertAbsent(client, id)
        for (const same of [`${id}`, `${id}.0`]) assertSuccess(await put(same), { name: 'n' })
        await free(client, [id])
      }
    },
  },
  {
    clause: replace,
    name: 'refuses what is no plant, and leaves the plant as it was',
    async run(client) {
      const plant = { id: ownId(), name: 'kept', tag: 't' }
      await create(client, plant)
      const put = (body: string) => client.ask('PUT', `/plants/${plant.id}`, { body })
      assertFailure(await put('{}'), 40002, 'name')
      assertFailure(await put('{"name":5,"tag":null}'), 40002, 'name', 'tag')
      assertFailure(await put('[]'), 40002)
      assertFailure(await put('{"name":"a","name":"a"}'), 40001)
      assertFailure(await put(''), 40001)
      assertFailure(await client.ask('PUT', '/plants/x', { body: '{"name":"n"}' }), 40004)
      assertSuccess(await client.ask('GET', `/plants/${plant.id}`), plant)
    },
  },
  {
    clause: remove,
    name: 'answers 204 without a body, then 404, and frees the id',
    async run(client) {
      const id = ownId()
      await create(client, { id, name: 'first', tag: 'freed' })
      const removed = await client.ask('DELETE', `/plants/${id}`)
      assert.deepEqual([removed.status, removed.body.length], [204, 0])
      assert.equal(removed.headers.has('content-length'), false)
      assertFailure(await client.ask('DELETE', `/plants/${id}`), 40402)
      await assertAbsent(client, id)
      assertSuccess(await client.ask('GET', '/plants?tag=freed'), [])
      await create(client, { id, name: 'again' })
      assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: 'again' })
      assertFailure(await client.ask('DELETE', '/plants/1.5'), 40004)
    },
  },
  {
    clause: remove,
    name: 'needs no media type without a body, whatever is said of the body that is not there',
    async run(client) {
      const id = ownId()
      const asked = { method: 'DELETE', target: client.target(`/plants/${id}`) }
      const fields = ['host: h', `authorization: Bearer ${client.store.tokens.full}`]
      for (const more of [
        [],
        ['content-length: 0'],
        ['content-type: text/plain'],
        ['content-type: text/plain', 'content-length: 0'],
        ['content-type: application/json; charset=utf-16'],
        ['content-type:'],
        ['content-type: rubbish'],
        ['content-encoding: gzip'],
      ]) {
        await create(client, { id, name: 'n' })
        const answer = await client.exchange(asked, bareRequest('DELETE', asked.target, [...fields, ...more]))
        assert.deepEqual([more, answer.status], [more, 204])
      }
    },
  },
  {
    clause: 'Decision 7, HEAD is GET without the body',
    name: 'for a plant, a list, a page that is open, and failures',
    async run(client) {
      const id = ownId()
      await create(client, { id, name: 'n' })
      for (const path of [
        `/plants/${id}`,
        '/plants?limit=1',
        '/healthz',
        `/plants/${ownId()}`,
        '/plants?limit=0',
        '/x',
      ]) {
        const [head, get] = [await client.ask('HEAD', path), await client.ask('GET', path)]
        assert.equal(head.status, get.status)
        assert.equal(head.body.length, 0)
        for (const name of ['content-type', 'content-length', 'link']) {
          assert.equal(head.headers.get(name), get.headers.get(name))
        }
      }
    },
  },
]

/** The next page, where a client finds it: a reference that is relative to what it asked for. */
async function follow(client: Client, answer: Answer): Promise<Answer> {
  const target = nextTarget(answer)
  assert.ok(target?.startsWith(client.target('/plants?')), `${target}`)
  return client.ask('GET', (target as string).slice(client.target('').length))
}

function nextTarget({ headers }: Answer): string | undefined {
  const link = headers.get('link')
  if (link === undefined) return undefined
  const [, target] = /^<([^<>]*)>; rel="next"$/.exec(link) ?? []
  assert.ok(target !== undefined, link)
  return target
}

type Page = readonly { readonly id: bigint; readonly name: string; readonly tag?: string }[]

async function allPages(client: Client, path: string): Promise<Page[]> {
  const pages: Page[] = []
  for (let answer = await client.ask('GET', path); ; answer = await follow(client, answer)) {
    assert.equal(answer.status, 200, `${answer.body}`)
    pages.push(held(answer) as Page)
    assert.ok(pages.length < 100, 'the pages have no end')
    if (nextTarget(answer) === undefined) return pages
  }
}
