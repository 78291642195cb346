import { readFile } from 'node:fs/promises'
import { type Answer, createRecorder, readExactly } from '@plant-store/contract'
import { afterAll, describe, expect, test } from 'vitest'
import { failures } from '../src/entities.ts'
import { withReferences } from '../src/openapi/description.ts'
import { startMemoryService } from './memory-service.ts'
import { lint } from './spectral.ts'

const service = await startMemoryService()
const text = await service.description()
const served = readExactly(text)
const specification = readExactly(await readFile(new URL('specification.json', import.meta.url), 'utf8'))

afterAll(() => service[Symbol.asyncDispose]())

/** Where `whole` does not have everything that `part` has, as `path: what is wrong`. A list has to be the same list. */
function missing(part: unknown, whole: unknown, path = ''): string[] {
  if (Array.isArray(part)) {
    if (!Array.isArray(whole)) return [`${path}: is no list`]
    if (part.length !== whole.length) return [`${path}: has ${whole.length} items, and not ${part.length}`]
    return part.flatMap((each, index) => missing(each, whole[index], `${path}/${index}`))
  }
  if (typeof part === 'object' && part !== null) {
    if (typeof whole !== 'object' || whole === null || Array.isArray(whole)) return [`${path}: is no object`]
    return Object.entries(part).flatMap(([name, each]) =>
      Object.hasOwn(whole, name)
        ? missing(each, (whole as Record<string, unknown>)[name], `${path}/${name}`)
        : [`${path}/${name}: is missing`],
    )
  }
  return part === whole ? [] : [`${path}: is ${String(whole)}, and not ${String(part)}`]
}

describe('the specification', () => {
  test('is in the served description, unchanged', () => {
    expect(missing(specification, served)).toEqual([])
  })

  test('is compared in every leaf: a description that differs in any one is found out', () => {
    const leaves = leavesOf(specification)
    expect(leaves.length).toBeGreaterThan(30)
    for (const path of leaves) {
      expect(missing(specification, without(served, path)), path.join('/')).not.toEqual([])
    }
  })

  test('leaves room for operations, statuses and members, and not for items of a list', () => {
    expect(missing({ a: 1 }, { a: 1, b: 2 })).toEqual([])
    expect(missing({ a: [1] }, { a: [1, 2] })).toEqual(['/a: has 2 items, and not 1'])
    expect(missing({ a: { b: 1n } }, { a: { b: 2n } })).toEqual(['/a/b: is 2, and not 1'])
    expect(missing({ a: {} }, { a: [] })).toEqual(['/a: is no object'])
  })
})

test('docs/openapi.json is what the server serves', async () => {
  // Read the difference, then write the new one with `vitest run -u`.
  const lines = text.replaceAll('{"', '{\n"').replaceAll(',"', ',\n"')
  await expect(lines).toMatchFileSnapshot('../../../docs/openapi.json')
})

test('docs/http.md ends with every error number', async () => {
  const page = '../../../docs/http.md'
  const [text = ''] = (await readFile(new URL(page, import.meta.url), 'utf8')).split(
    /(?<=^\| error .*\n.*\n)/m,
  )
  const rows = Object.values(failures).map(([number, meaning]) => `| ${number} | ${meaning} |\n`)
  await expect(text + rows.sort().join('')).toMatchFileSnapshot(page)
})

test.each([
  ['https://plants.example/', 'https://plants.example'],
  ['https://plants.example/green/', 'https://plants.example/green'],
])('at %s it names the public URL, without a last slash', async (baseUrl, url) => {
  await using published = await startMemoryService({ baseUrl: new URL(baseUrl) })
  expect(JSON.parse(await published.description()).servers).toEqual([{ url }])
})

test('Spectral finds nothing, by its own rules, those of OWASP and ours', async () => {
  await using published = await startMemoryService({ baseUrl: new URL('https://plants.example') })
  expect(await lint(await published.description())).toMatch(/^No results/)
}, 60_000)

test('int64 has its exact bounds in the bytes that are served', () => {
  const schema = '"type":"integer","format":"int64","description":"Identification number of the plant"'
  const bounds = '"minimum":-9223372036854775808,"maximum":9223372036854775807'
  expect(text).toContain(`{${schema},${bounds}}`)
  // What a plain JSON.stringify would have made of them.
  expect(text).not.toMatch(/922337203685477600|9\.22/)
})

test('an int64 may have narrower bounds', () => {
  const schema = { type: 'integer', format: 'int64', minimum: 0, maximum: 10_000 }
  expect(JSON.parse(JSON.stringify(schema, withReferences))).toEqual(schema)
})

test('every shared response and schema is referred to, as a reference page lists each', () => {
  const { components } = JSON.parse(text) as { components: Record<string, object> }
  const { securitySchemes: _, ...shared } = components
  for (const [kind, named] of Object.entries(shared))
    expect(Object.keys(named).filter(name => !text.includes(`"#/components/${kind}/${name}"`))).toEqual([])
})

test('parameters of the path come first, as a reference page lists them in this order', () => {
  const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, { parameters: Named[] }>> }
  const parameters = paths['/plants/{id}']?.['get']?.parameters
  expect(parameters?.map(({ name }) => name)).toEqual(['id', 'If-Match', 'If-None-Match'])
})

test('every failure declares the header fields that go with it', () => {
  const { components } = served as { components: { responses: Record<string, { headers?: object }> } }
  const declared = Object.entries(components.responses).map(([name, { headers = {} }]) => [
    name,
    Object.keys(headers),
  ])
  expect(Object.fromEntries(declared)).toMatchObject({
    Failure401: ['WWW-Authenticate'],
    Failure403: ['WWW-Authenticate'],
    Failure503: ['Retry-After'],
  })
})

describe('the recorder', () => {
  const recorder = createRecorder(text)
  const answer = (status: number, body: string, headers: Record<string, string> = {}): Answer => ({
    status,
    headers: new Map(Object.entries({ 'content-type': 'application/json', ...headers })),
    body: Buffer.from(body),
    interim: [],
  })
  const post = { method: 'POST', target: '/plants' }
  const read = { method: 'GET', target: '/plants/1' }
  const patch = { method: 'PATCH', target: '/plants' }
  const nowhere = { method: 'GET', target: '/x' }
  const ofType = (mediaType: string) => ({ 'content-type': mediaType })
  const failure = (error: number) => JSON.stringify({ error, message: 'm' })

  test.each([
    ['a plant', post, answer(200, '{"name":"n","tag":"t"}')],
    ['a stored plant at the end of int64', read, answer(200, '{"id":9223372036854775807,"name":"n"}')],
    ['a page', { method: 'GET', target: '/plants?limit=1' }, answer(200, '[{"id":1,"name":"n"}]')],
    ['a failure', post, answer(400, failure(40001))],
    ['a challenge', post, answer(401, failure(40101), { 'www-authenticate': 'Bearer' })],
    ['no such path', nowhere, answer(404, failure(40401))],
    ['no such method', patch, answer(405, failure(40501), { allow: 'GET, HEAD, POST' })],
    ['the head of an answer', { method: 'HEAD', target: '/plants/1' }, answer(200, '')],
    ['what no request was made of', undefined, answer(400, failure(40000))],
  ])('lets pass %s', (_, asked, given) => {
    expect(() => recorder.check(asked, given)).not.toThrow()
  })

  test.each([
    ['a status that is not declared', post, answer(201, '{"name":"n"}'), /201 is not declared/],
    ['one that is declared elsewhere', post, answer(404, failure(40402)), /404 is not declared/],
    ['a missing member', post, answer(200, '{"tag":"t"}'), /name/],
    ['a member of another type', post, answer(200, '{"name":null}'), /string/],
    ['an id that is text', read, answer(200, '{"id":"1","name":"n"}'), /\/id/],
    ['an id with a fraction', read, answer(200, '{"id":1.5,"name":"n"}'), /\/id/],
    ['an id one above int64', read, answer(200, '{"id":9223372036854775808,"name":"n"}'), /\/id/],
    ['an error above int32', post, answer(400, '{"error":2147483648,"message":"m"}'), /\/error/],
    ['an error that is not published', post, answer(400, failure(40099)), /not published/],
    ['an error of another status', post, answer(400, failure(41301)), /another status/],
    ['a third member', post, answer(400, '{"error":40001,"message":"m","code":"x"}'), /members/],
    ['another media type', post, answer(400, failure(40001), ofType('text/html')), /content-type/],
    [
      'a charset',
      post,
      answer(200, '{"name":"n"}', ofType('application/json; charset=utf-8')),
      /content-type/,
    ],
    ['a challenge that is missing', post, answer(401, failure(40101)), /WWW-Authenticate/],
    ['methods that are not the declared ones', patch, answer(405, failure(40501), { allow: 'GET' }), /Allow/],
    ['404 at a known path', patch, answer(404, failure(40401)), /declared/],
    ['success where nothing is declared', nowhere, answer(200, '{}'), /not declared|nothing is/],
    ['a body after HEAD', { method: 'HEAD', target: '/plants/1' }, answer(200, '{}'), /HEAD/],
    ['a body that is no JSON', post, answer(400, 'Bad Request'), /no valid JSON|not JSON/],
  ])('finds out %s', (_, asked, given, fault) => {
    expect(() => recorder.check(asked, given)).toThrow(fault)
  })
})

interface Named {
  readonly name: string
}

type Path = readonly string[]

function leavesOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  const members = Object.entries(value)
  return members.length === 0 ? [path] : members.flatMap(([name, each]) => leavesOf(each, [...path, name]))
}

function without(value: unknown, [name, ...rest]: Path): unknown {
  if (name === undefined) return undefined
  const copy = structuredClone(value) as Record<string, unknown>
  if (rest.length === 0) copy[name] = 'another'
  else copy[name] = without(copy[name], rest)
  return copy
}
