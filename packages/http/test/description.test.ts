import { readFileSync } from 'node:fs'
import { type Asked, createRecorder, readExactly } from '@plant-store/http/testing'
import { afterAll, expect, test } from 'vitest'
import { failures } from '../src/errors/error-numbers.ts'
import { type Service, startService } from './memory-service.ts'

const service = await startService()
const describeOf = async ({ url }: Service) => (await fetch(`${url}/openapi.json`)).text()
const text = await describeOf(service)
const served = readExactly(text)
const recorder = createRecorder(text)
const specification = readExactly(
  readFileSync(new URL('specification.json', import.meta.url), 'utf8'),
)

afterAll(() => service[Symbol.asyncDispose]())

test('the specification is in the served description, unchanged', () => {
  expect(served).toMatchObject(specification as object)
})

test('a client that accepts gzip gets the description compressed', async () => {
  const get = (accepted: string) =>
    fetch(`${service.url}/openapi.json`, { headers: { 'accept-encoding': accepted } })

  const [compressed, plain] = await Promise.all([get('gzip'), get('identity')])

  expect(compressed.headers.get('content-encoding')).toBe('gzip')
  expect(compressed.headers.get('vary')).toContain('accept-encoding')
  expect(plain.headers.get('content-encoding')).toBeNull()
  expect(await compressed.text()).toBe(await plain.text())
})

test('docs/openapi.json is what the server serves', async () => {
  // Read the difference, then write the new one with `vitest run -u`.
  const lines = text.replaceAll('{"', '{\n"').replaceAll(',"', ',\n"')
  await expect(lines).toMatchFileSnapshot('../../../docs/openapi.json')
})

test('docs/http.md ends with every error number, each with one meaning', async () => {
  const page = '../../../docs/http.md'
  const written = readFileSync(new URL(page, import.meta.url), 'utf8')
  const [textBefore = ''] = written.split(/(?<=^\| error .*\n.*\n)/m)

  const known = Object.values(failures)
  const numbers = new Set(known.map(([number]) => number))
  const rows = known.map(([number, meaning]) => `| ${number} | ${meaning} |\n`)

  expect(numbers.size).toBe(known.length)
  await expect(textBefore + rows.sort().join('')).toMatchFileSnapshot(page)
})

test('the public URL in the description has no last slash', async () => {
  const baseUrl = new URL('https://plants.example/green/')
  await using published = await startService({ baseUrl })

  const { servers } = JSON.parse(await describeOf(published))

  expect(servers).toEqual([{ url: 'https://plants.example/green' }])
})

test('every shared component of the description is referred to', () => {
  const { components } = JSON.parse(text) as { components: Record<string, object> }
  // Security schemes are referred to by their names alone.
  const { securitySchemes: _, ...shared } = components

  const references = Object.entries(shared).flatMap(([kind, named]) =>
    Object.keys(named).map(name => `"#/components/${kind}/${name}"`),
  )

  const unused = references.filter(reference => !text.includes(reference))
  expect(unused).toEqual([])
})

const post = { method: 'POST', target: '/plants' }
const read = { method: 'GET', target: '/plants/1' }

/** Returns the body of a failure with this number. */
const failure = (error: number) => JSON.stringify({ error, message: 'm' })

test.each<
  readonly [why: string, asked: Asked, status: number, body: string, fault: string]
>([
  ['a status that is not declared', post, 404, failure(40402), '404 is not declared'],
  ['a member of another type', post, 200, '{"name":null}', '/name must be string'],
  ['an id above the largest', read, 200, `{"id":${2n ** 63n},"name":"n"}`, '/id'],
  ['the number of another status', post, 400, failure(41301), 'another status'],
  ['401 without a challenge', post, 401, failure(40101), 'WWW-Authenticate'],
  ['success of an unknown path', { ...read, target: '/x' }, 200, '{}', 'nothing'],
])('the recorder of the contract refuses %s', (...exchange) => {
  const [, asked, status, body, fault] = exchange
  const headers = new Map([
    ['content-type', 'application/json'],
    ['cache-control', 'no-store'],
  ])
  const answer = { status, headers, body: Buffer.from(body), interim: [] }

  expect(() => recorder.check(asked, answer)).toThrow(fault)
})
