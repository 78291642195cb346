import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { createRecorder, readExactly } from '@plant-store/http/testing'
import { afterAll, expect, test } from 'vitest'
import { failures } from '../src/errors/error-numbers.ts'
import { type Service, startService } from './memory-service.ts'

const service = await startService()
const describeOf = async ({ url }: Service) => (await fetch(`${url}/openapi.json`)).text()
const text = await describeOf(service)
const served = readExactly(text)
const specification = readExactly(
  readFileSync(new URL('specification.json', import.meta.url), 'utf8'),
)

afterAll(() => service[Symbol.asyncDispose]())

test('the specification is in the served description, unchanged', () => {
  expect(served).toMatchObject(specification as object)
})

test('a client that accepts gzip gets the description compressed', async () => {
  await using service = await startService()
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

  const description = await describeOf(published)

  const { servers } = JSON.parse(description)
  expect(servers).toEqual([{ url: 'https://plants.example/green' }])
})

test('Spectral finds nothing, by its own rules, those of OWASP and ours', async () => {
  // The rules for servers apply to a description with a public URL only.
  const baseUrl = new URL('https://plants.example/green/')
  await using published = await startService({ baseUrl })
  const file = join(temporaryFolder(), 'openapi.json')
  writeFileSync(file, await describeOf(published))
  const spectral = join(import.meta.dirname, '../node_modules/.bin/spectral')
  const ruleset = join(import.meta.dirname, 'spectral.yaml')
  const args = ['lint', file, '--ruleset', ruleset, '--fail-severity', 'hint']

  const { stdout } = spawnSync(spectral, args, { encoding: 'utf8' })

  expect(stdout).toMatch(/^No results/)
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
const head = { method: 'HEAD', target: '/plants/1' }
const patch = { method: 'PATCH', target: '/plants' }
const unknown = { method: 'GET', target: '/x' }

/** An answer for the recorder. Its media type is JSON unless the fields name another. */
interface Exchange {
  readonly why: string
  readonly request: typeof post | undefined
  readonly status: number
  readonly body: string
  readonly fields?: Readonly<Record<string, string>>
}

/** Checks an answer as each test of the contract does. */
function record({ request, status, body, fields }: Exchange): void {
  const headers = new Map(
    Object.entries({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      ...fields,
    }),
  )
  const { check } = createRecorder(text)
  check(request, { status, headers, body: Buffer.from(body), interim: [] })
}

/** Returns the body of a failure with this number. */
function failure(error: number): string {
  return JSON.stringify({ error, message: 'm' })
}

test.each<Exchange & { readonly fault: string }>([
  {
    why: 'a status that the operation does not declare',
    request: post,
    status: 404,
    body: failure(40402),
    fault: '404 is not declared',
  },
  {
    why: 'a member of another type',
    request: post,
    status: 200,
    body: '{"name":null}',
    fault: '/name must be string',
  },
  {
    why: 'an id above the largest one',
    request: read,
    status: 200,
    body: '{"id":9223372036854775808,"name":"n"}',
    fault: '/id',
  },
  {
    why: 'an unknown error number',
    request: post,
    status: 400,
    body: failure(40099),
    fault: 'not published',
  },
  {
    why: 'the error number of another status',
    request: post,
    status: 400,
    body: failure(41301),
    fault: 'another status',
  },
  {
    why: 'a failure with one more member',
    request: post,
    status: 400,
    body: '{"error":40001,"message":"m","code":"x"}',
    fault: 'members',
  },
  {
    why: 'another media type',
    request: post,
    status: 200,
    body: '{"name":"n"}',
    fields: { 'content-type': 'text/html' },
    fault: 'content-type',
  },
  {
    why: '401 without a challenge',
    request: post,
    status: 401,
    body: failure(40101),
    fault: 'WWW-Authenticate',
  },
  {
    why: '405 with too few methods',
    request: patch,
    status: 405,
    body: failure(40501),
    fields: { allow: 'GET' },
    fault: 'Allow',
  },
  {
    why: '404 for a path that exists',
    request: patch,
    status: 404,
    body: failure(40401),
    fault: 'declared',
  },
  {
    why: 'success of an unknown path',
    request: unknown,
    status: 200,
    body: '{}',
    fault: 'nothing is declared',
  },
  {
    why: 'HEAD with a body',
    request: head,
    status: 200,
    body: '{}',
    fault: 'HEAD',
  },
  {
    why: 'a body that is not JSON',
    request: post,
    status: 400,
    body: 'Bad Request',
    fault: 'not JSON',
  },
])('the recorder of the contract refuses $why', ({ fault, ...exchange }) => {
  expect(() => record(exchange)).toThrow(fault)
})
