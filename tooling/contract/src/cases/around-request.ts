import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { gzipSync } from 'node:zlib'
import {
  assertAbsent,
  assertFailure,
  assertSuccess,
  bareRequest,
  type ContractCase,
  create,
  ownId,
  plantRequest,
  toJson,
} from '../contract-case.ts'

const clause = 'Decision 4, one shape for every failure'
const keptMeaning = 'Decision 4, the request around the plant'

/** Each operation, with a path that it answers, and whether it needs a token. */
const operations = [
  ['POST', '/plants'],
  ['GET', '/plants'],
  ['GET', '/plants/1'],
  ['PUT', '/plants/1'],
  ['DELETE', '/plants/1'],
  ['GET', '/healthz'],
  ['GET', '/readyz'],
  ['GET', '/openapi.json'],
  ['GET', '/metrics'],
] as const

const notHttp = [
  'nonsense\r\n\r\n',
  '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
  'GET\r\n\r\n',
  'GET /pl\u00e4nts HTTP/1.1\r\nhost: h\r\n\r\n',
  'GET /healthz HTTP/9.9\r\nhost: h\r\n\r\n',
  'GET /healthz HTTX/1.1\r\nhost: h\r\n\r\n',
  'GET /heal thz HTTP/1.1\r\nhost: h\r\n\r\n',
  'GET /healthz\u0000 HTTP/1.1\r\nhost: h\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nhost: h\r\nno colon\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nhost: h\r\nbad name: x\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nhost: h\r\n: no name\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nhost: h\r\nx: a\u0000b\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nhost: h\r\ncontent-length: x\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked, identity\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
]

const wrongHosts = [
  'a b',
  'a,b',
  'a/b',
  'a?b',
  'a#b',
  'u@a',
  'u:p@a',
  'a:b',
  'a:1:2',
  'a:-1',
  ':80',
  '[::1',
  '::1',
  '[]',
  '[::1]x',
  '[::g]',
  '[fe80::1%25eth0]',
  '[127.0.0.1]',
  'a%',
  'a%4',
  'a%zz',
  'a"b',
  'a<b>',
  'a\\b',
  'http://a',
  '\u00e4',
]

const hosts = [
  '',
  'a',
  'plants.example',
  'PLANTS.example.:8080',
  'a_b-c~d',
  'a:',
  'a:80',
  '127.0.0.1',
  '127.0.0.1:3000',
  '[::1]',
  '[::1]:3000',
  '[2001:db8::ffff:192.0.2.1]:',
  'pl%c3%a4nts.example',
  "!$&'()*+;=",
]

const mediaTypes = [
  'text/plain',
  'text/json',
  'application/jsonx',
  'application/json5',
  'application/problem+json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/json garbage',
  'application/json, text/plain',
  'application',
  '*/*',
  'application/json; charset=iso-8859-1',
  'application/json; charset=utf-16',
  'application/json;charset="latin1"',
  'application/json; x="a;b"; charset=utf-16',
  'application/json; x="\\"; charset=utf-16',
]

export const aroundRequestCases: readonly ContractCase[] = [
  ...operations.map(
    ([method, path]): ContractCase => ({
      clause,
      name: `${method} ${path} without a Host, or with two, gets 400`,
      async run(client) {
        const asked = { method, target: client.target(path) }
        const token = `authorization: Bearer ${client.store.tokens.full}`
        for (const hosts of [[], ['host: a', 'host: a'], ['host: a', 'Host: b']]) {
          const answer = await client.exchange(asked, bareRequest(method, asked.target, [token, ...hosts]))
          assertFailure(answer, 40007, 'host')
        }
      },
    }),
  ),
  {
    clause,
    name: 'a field that says who asks or what is sent, given twice, gets 400',
    async run(client) {
      const id = ownId()
      const asked = { method: 'POST', target: client.target('/plants') }
      const body = toJson({ id, name: 'n' })
      for (const field of [
        `authorization: Bearer ${client.store.tokens.full}`,
        'content-type: application/json',
        'content-encoding: identity\r\ncontent-encoding: gzip',
      ]) {
        assertFailure(await client.exchange(asked, plantRequest(client, body, [field])), 40008)
      }
      await assertAbsent(client, id)
    },
  },
  {
    clause: 'RFC 9112, 3.2',
    name: 'a Host that is no host gets 400, also in HTTP/1.0',
    async run(client) {
      const asked = { method: 'GET', target: client.target('/healthz') }
      for (const host of wrongHosts) {
        for (const version of ['1.1', '1.0']) {
          using wire = await client.open()
          wire.send(Buffer.from(`GET ${asked.target} HTTP/${version}\r\nhost: ${host}\r\n\r\n`, 'latin1'))
          const answer = await wire.answer(asked)
          assert.equal(answer.status, 400, `${host} in HTTP/${version}`)
          assertFailure(answer, 40007, 'host')
        }
      }
    },
  },
  {
    clause: 'RFC 9112, 3.2',
    name: 'a Host is a name, an address or nothing, with a port or without',
    async run(client) {
      const plant = { id: ownId(), name: 'n' }
      await create(client, plant)
      const asked = { method: 'GET', target: client.target(`/plants/${plant.id}`) }
      for (const host of hosts) {
        const fields = [`host: ${host}`, `authorization: Bearer ${client.store.tokens.full}`]
        assertSuccess(await client.exchange(asked, bareRequest('GET', asked.target, fields)), plant)
      }
    },
  },
  {
    clause: 'RFC 9110, 10.1.1',
    name: 'HTTP/1.0 knows no expectations: each is ignored',
    async run(client) {
      for (const expectation of ['100-continue', 'a miracle']) {
        const id = ownId()
        const body = toJson({ id, name: 'old' })
        const asked = { method: 'POST', target: client.target('/plants') }
        const head = plantRequest(client, body, [`expect: ${expectation}`])
        const answer = await client.exchange(asked, `${head}`.replace('HTTP/1.1', 'HTTP/1.0'))
        assertSuccess(answer, { name: 'old' })
        assert.deepEqual(answer.interim, [])
      }
    },
  },
  ...notHttp.map(
    (bytes): ContractCase => ({
      clause,
      name: `bytes that are no HTTP get 400 and the end of the connection: ${JSON.stringify(bytes).slice(0, 70)}`,
      async run(client) {
        using wire = await client.open()
        wire.send(Buffer.from(bytes, 'latin1'))
        const answer = await wire.answer(undefined)
        assertFailure(answer, 40000)
        assert.equal(answer.headers.get('connection'), 'close')
        assert.equal((await wire.closed()).length, 0)
      },
    }),
  ),
  {
    clause,
    name: 'a body in broken chunks gets 400',
    async run(client) {
      const id = ownId()
      const asked = { method: 'POST', target: client.target('/plants') }
      const json = toJson({ id, name: 'n' })
      for (const chunks of [
        'zz\r\n',
        `${json.length.toString(16)}\r\n${json}\r\nzz\r\n`,
        '-1\r\n',
        '2\r\n{}}}\r\n',
      ]) {
        const request = plantRequest(client, chunks, ['transfer-encoding: chunked'])
        assertFailure(await client.exchange(asked, request), 40000)
      }
      await assertAbsent(client, id)
    },
  },
  {
    clause,
    name: 'a path that is not correctly percent-encoded gets 400',
    async run(client) {
      for (const path of [
        '/plants/%',
        '/plants/%4',
        '/plants/%zz',
        '/plants/%ff',
        '/%ed%a0%80',
        '/plants/%c0%af',
      ]) {
        assertFailure(await client.ask('GET', path), 40006)
      }
    },
  },
  ...operations.map(
    ([method, path]): ContractCase => ({
      clause: keptMeaning,
      name: `${method} ${path} with header fields too large gets 431`,
      async run(client) {
        const asked = { method, target: client.target(path) }
        const { headerBytesMax, tokens } = client.store
        const fields = ['host: h', `authorization: Bearer ${tokens.full}`]
        const many = Array.from({ length: 40 }, (_, n) => `x-${n}: ${'y'.repeat(headerBytesMax / 40)}`)
        for (const more of [[`x: ${'y'.repeat(headerBytesMax)}`], many]) {
          const answer = await client.exchange(asked, bareRequest(method, asked.target, [...fields, ...more]))
          assertFailure(answer, 43101)
          assert.equal(answer.headers.get('connection'), 'close')
        }
        const long = `${path}?x=${'y'.repeat(headerBytesMax)}`
        assertFailure(await client.exchange(asked, bareRequest(method, client.target(long), fields)), 43101)
      },
    }),
  ),
  ...operations.map(
    ([method, path]): ContractCase => ({
      clause: keptMeaning,
      name: `${method} ${path} with an expectation that can't be met gets 417`,
      async run(client) {
        const asked = { method, target: client.target(path) }
        const token = `authorization: Bearer ${client.store.tokens.full}`
        const fields = ['host: h', token, 'expect: a miracle']
        assertFailure(await client.exchange(asked, bareRequest(method, asked.target, fields)), 41701)
      },
    }),
  ),
  {
    clause: keptMeaning,
    name: 'a body too large gets 413 whatever the operation, also when its length is not told before',
    async run(client) {
      const length = client.store.bodyBytesMax + 1
      const body = `${'{"name":"'.padEnd(length - 2, 'x')}"}`
      assertFailure(await client.ask('PUT', '/plants/1', { body }), 41301)
      assertFailure(await client.ask('DELETE', '/plants/1', { body }), 41301)
      const headers = { 'transfer-encoding': 'chunked' }
      const asked = { method: 'PUT', target: client.target('/plants/1') }
      const fields = Object.entries(headers).map(each => each.join(': '))
      const token = `authorization: Bearer ${client.store.tokens.full}`
      const head = ['host: h', token, 'content-type: application/json', ...fields]
      const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
      assertFailure(await client.exchange(asked, bareRequest('PUT', asked.target, head), chunk), 41301)
    },
  },
  ...mediaTypes.map(
    (type): ContractCase => ({
      clause: keptMeaning,
      name: `the media type ${type} gets 415`,
      async run(client) {
        const id = ownId()
        const body = toJson({ id, name: 'n' })
        const headers = { 'content-type': type }
        assertFailure(await client.ask('POST', '/plants', { body, headers }), 41501)
        assertFailure(await client.ask('PUT', `/plants/${id}`, { body, headers }), 41501)
        await assertAbsent(client, id)
      },
    }),
  ),
  {
    clause: keptMeaning,
    name: 'a body without a media type gets 415',
    async run(client) {
      const body = toJson({ id: ownId(), name: 'n' })
      const asked = { method: 'POST', target: client.target('/plants') }
      const fields = ['host: h', `authorization: Bearer ${client.store.tokens.full}`]
      for (const type of [[], ['content-type:'], ['content-type: ']]) {
        const head = bareRequest('POST', asked.target, [...fields, ...type, `content-length: ${body.length}`])
        assertFailure(await client.exchange(asked, head, body), 41501)
      }
      assertFailure(
        await client.ask('DELETE', '/plants/1', { body, headers: { 'content-type': 'text/plain' } }),
        41501,
      )
    },
  },
  {
    clause: keptMeaning,
    name: 'application/json is taken in any case and with a charset that is UTF-8',
    async run(client) {
      for (const type of [
        'application/json',
        'Application/JSON',
        'application/json; charset=utf-8',
        'application/json;charset=UTF-8',
        'application/json ; charset="utf-8"',
        'application/json; profile=x',
        'application/json; x="; charset=utf-16"',
        'application/json; x="\\"; charset=utf-16"; charset=utf-8',
        'application/json; xcharset=utf-16',
        'application/json;',
      ]) {
        const body = toJson({ id: ownId(), name: type })
        const headers = { 'content-type': type }
        assertSuccess(await client.ask('POST', '/plants', { body, headers }), { name: type })
      }
    },
  },
  {
    clause: keptMeaning,
    name: 'a content coding gets 415, and the codings that are taken',
    async run(client) {
      const id = ownId()
      const json = toJson({ id, name: 'n' })
      for (const [coding, body] of [
        ['gzip', gzipSync(json)],
        ['gzip', Buffer.from(json)],
        ['GZIP', gzipSync(json)],
        ['br', Buffer.from(json)],
        ['deflate', Buffer.from(json)],
        ['identity, gzip', gzipSync(json)],
        ['made-up', Buffer.from(json)],
      ] as const) {
        const answer = await client.ask('POST', '/plants', { body, headers: { 'content-encoding': coding } })
        assertFailure(answer, 41502)
        assert.equal(answer.headers.get('accept-encoding'), 'identity')
      }
      await assertAbsent(client, id)
      const headers = { 'content-encoding': 'identity' }
      assertSuccess(await client.ask('POST', '/plants', { body: json, headers }), { name: 'n' })
    },
  },
  {
    clause: keptMeaning,
    name: 'only a body is judged: reading is not refused for a coding or a charset',
    async run(client) {
      const plant = { id: ownId(), name: 'n' }
      await create(client, plant)
      for (const headers of [
        { 'content-encoding': 'gzip' },
        { 'content-type': 'application/json; charset=utf-16' },
        { 'content-type': 'text/plain' },
        { 'content-type': '' },
        { 'content-range': 'bytes 0-1/2' },
      ] as Record<string, string>[]) {
        assertSuccess(await client.ask('GET', `/plants/${plant.id}`, { headers }), plant)
        assertSuccess(await client.ask('GET', '/plants?tag=none%20such', { headers }), [])
        assert.equal((await client.ask('HEAD', `/plants/${plant.id}`, { headers })).status, 200)
      }
    },
  },
  {
    clause: keptMeaning,
    name: 'a transfer coding other than chunked gets 415',
    async run(client) {
      const id = ownId()
      const json = toJson({ id, name: 'n' })
      const chunks = `${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`
      const asked = { method: 'POST', target: client.target('/plants') }
      for (const coding of ['gzip, chunked', 'deflate,chunked']) {
        const request = plantRequest(client, chunks, [`transfer-encoding: ${coding}`])
        assertFailure(await client.exchange(asked, request), 41502)
      }
      await assertAbsent(client, id)
      const chunked = plantRequest(client, chunks, ['Transfer-Encoding: Chunked'])
      assertSuccess(await client.exchange(asked, chunked), { name: 'n' })
    },
  },
  {
    clause: keptMeaning,
    name: 'every method that is not declared gets 405, with Allow',
    async run(client) {
      const allowed: readonly (readonly [string, readonly string[]])[] = [
        ['/plants', ['GET', 'HEAD', 'POST']],
        ['/plants/1', ['DELETE', 'GET', 'HEAD', 'PUT']],
        ['/healthz', ['GET', 'HEAD']],
        ['/readyz', ['GET', 'HEAD']],
        ['/openapi.json', ['GET', 'HEAD']],
        ['/metrics', ['GET', 'HEAD']],
      ]
      for (const [path, methods] of allowed) {
        const target = client.target(path)
        for (const method of METHODS) {
          if (methods.includes(method) || method === 'CONNECT') continue
          const fields = ['host: h', `authorization: Bearer ${client.store.tokens.full}`, 'content-length: 0']
          const answer = await client.exchange({ method, target }, bareRequest(method, target, fields))
          assertFailure(answer, 40501, ...methods)
          assert.deepEqual(answer.headers.get('allow')?.split(', ').sort(), methods)
        }
      }
    },
  },
  {
    clause: keptMeaning,
    name: 'a method that nobody has heard of is a failure in the one shape, and case counts',
    async run(client) {
      const fields = ['host: h', `authorization: Bearer ${client.store.tokens.full}`]
      for (const method of ['BREW', 'get', 'Post', 'GETT']) {
        const answer = await client.exchange(undefined, bareRequest(method, client.target('/plants'), fields))
        assertFailure(answer, 40000)
      }
    },
  },
  {
    clause: keptMeaning,
    name: 'CONNECT gets 405: this is no proxy',
    async run(client) {
      const fields = ['host: example.com:443', `authorization: Bearer ${client.store.tokens.full}`]
      const answer = await client.exchange(undefined, bareRequest('CONNECT', 'example.com:443', fields))
      assertFailure(answer, 40501)
      assert.equal(answer.headers.has('allow'), true)
      assert.equal(answer.headers.get('connection'), 'close')
    },
  },
  {
    clause: keptMeaning,
    name: 'a path that nothing is at gets 404',
    async run(client) {
      const id = ownId()
      await create(client, { id, name: 'n' })
      for (const path of [
        '/',
        '/plant',
        '/Plants',
        `/plants/${id}/`,
        `/plants/${id}/x`,
        '/plants//',
        '//plants',
        '/v1/plants',
      ]) {
        for (const method of ['GET', 'POST', 'DELETE']) assertFailure(await client.ask(method, path), 40401)
      }
      for (const target of ['*', 'plants']) {
        const fields = ['host: h', `authorization: Bearer ${client.store.tokens.full}`]
        const asked = { method: 'OPTIONS', target: `/${target}` }
        const answer = await client.exchange(asked, bareRequest('OPTIONS', target, fields))
        assert.ok(answer.status === 404 || answer.status === 400)
      }
    },
  },
  {
    clause: 'RFC 9112',
    name: 'a target in absolute form is taken for its path',
    async run(client) {
      const id = ownId()
      const fields = ['host: h', `authorization: Bearer ${client.store.tokens.full}`]
      for (const [n, origin] of ['http://h', 'http://other.example:8080', 'HTTPS://h'].entries()) {
        const each = id * 10n + BigInt(n)
        await create(client, { id: each, name: 'n', tag: 'absolute form' })
        const target = `${origin}${client.target(`/plants/${each}`)}`
        const answer = await client.exchange({ method: 'GET', target }, bareRequest('GET', target, fields))
        assertSuccess(answer, { id: each, name: 'n', tag: 'absolute form' })
        const list = `${origin}${client.target('/plants?limit=1&tag=absolute%20form')}`
        assert.equal(
          (await client.exchange({ method: 'GET', target: list }, bareRequest('GET', list, fields))).status,
          200,
        )
      }
      const unknown = { method: 'GET', target: `http://h${client.target('/x')}` }
      assertFailure(await client.exchange(unknown, bareRequest('GET', unknown.target, fields)), 40401)
    },
  },
  {
    clause: 'RFC 9112',
    name: 'HTTP/1.0 is answered too, without a Host, and its connection closed',
    async run(client) {
      const id = ownId()
      const body = toJson({ id, name: 'old' })
      const asked = { method: 'POST', target: client.target('/plants') }
      const fields = [
        `authorization: Bearer ${client.store.tokens.full}`,
        'content-type: application/json',
        `content-length: ${body.length}`,
      ]
      using wire = await client.open()
      wire.send(`POST ${asked.target} HTTP/1.0\r\n${fields.join('\r\n')}\r\n\r\n${body}`)
      assertSuccess(await wire.answer(asked), { name: 'old' })
      assert.equal((await wire.closed()).length, 0)
      using anonymous = await client.open()
      anonymous.send(`GET ${client.target('/plants')} HTTP/1.0\r\n\r\n`)
      assertFailure(await anonymous.answer({ method: 'GET', target: client.target('/plants') }), 40101)
      assert.equal((await anonymous.closed()).length, 0)
    },
  },
  {
    clause: 'RFC 9112',
    name: 'requests sent without waiting are answered one by one, in their order',
    async run(client) {
      const ids = Array.from({ length: 20 }, ownId)
      const post = { method: 'POST', target: client.target('/plants') }
      using wire = await client.open()
      const requests = ids.flatMap(id => {
        const read = ['host: h', `authorization: Bearer ${client.store.tokens.full}`]
        return [
          plantRequest(client, toJson({ id, name: `${id}` })),
          bareRequest('GET', client.target('/healthz'), read),
          plantRequest(client, toJson({ id, name: 5 })),
        ]
      })
      wire.send(Buffer.concat(requests.map(each => Buffer.from(each))))
      for (const id of ids) {
        assertSuccess(await wire.answer(post), { name: `${id}` })
        assertSuccess(await wire.answer({ method: 'GET', target: client.target('/healthz') }), {
          status: 'ok',
        })
        assertFailure(await wire.answer(post), 40002, 'name')
      }
      for (const id of ids) assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: `${id}` })
    },
  },
  {
    clause: 'RFC 9112',
    name: 'bytes that are no HTTP after a request do not take its answer away',
    async run(client) {
      const asked = { method: 'POST', target: client.target('/plants') }
      for (const garbage of [
        'nonsense\r\n\r\n',
        `GET / HTTP/1.1\r\nx: ${'y'.repeat(client.store.headerBytesMax)}\r\n\r\n`,
      ]) {
        const ids = [ownId(), ownId()]
        using wire = await client.open()
        for (const id of ids) wire.send(plantRequest(client, toJson({ id, name: `${id}` })))
        wire.send(garbage)
        for (const id of ids) {
          assertSuccess(await wire.answer(asked), { name: `${id}` })
          assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: `${id}` })
        }
        assertFailure(await wire.answer(undefined), garbage.startsWith('GET') ? 43101 : 40000)
        assert.equal((await wire.closed()).length, 0)
      }
    },
  },
  {
    clause: 'RFC 9112',
    name: 'one request gets one answer, also when it is refused before its broken body',
    async run(client) {
      const asked = { method: 'POST', target: client.target('/plants') }
      const fields = ['host: h', 'content-type: application/json', 'transfer-encoding: chunked']
      using wire = await client.open()
      wire.send(bareRequest('POST', asked.target, fields))
      assertFailure(await wire.answer(asked), 40101)
      wire.send('zz\r\n')
      assert.equal(`${await wire.closed()}`, '')
    },
  },
]
