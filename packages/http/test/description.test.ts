import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRecorder, readExactly } from '@plant-store/contract'
import { temporaryFolder } from '@plant-store/harness/vitest'
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

test('docs/openapi.json is what the server serves', async () => {
  // Read the difference, then write the new one with `vitest run -u`.
  const lines = text.replaceAll('{"', '{\n"').replaceAll(',"', ',\n"')
  await expect(lines).toMatchFileSnapshot('../../../docs/openapi.json')
})

test('docs/http.md ends with every error number, each with one meaning', async () => {
  const page = '../../../docs/http.md'
  const written = readFileSync(new URL(page, import.meta.url), 'utf8')
  const [text = ''] = written.split(/(?<=^\| error .*\n.*\n)/m)
  const rows = Object.values(failures).map(
    ([number, meaning]) => `| ${number} | ${meaning} |\n`,
  )
  expect(new Set(Object.values(failures).map(([number]) => number)).size).toBe(
    rows.length,
  )
  await expect(text + rows.sort().join('')).toMatchFileSnapshot(page)
})

test('Spectral finds nothing, by its own rules, those of OWASP and ours, and the public URL has no last slash', async () => {
  await using published = await startService({
    baseUrl: new URL('https://plants.example/green/'),
  })
  const described = await describeOf(published)
  expect(JSON.parse(described).servers).toEqual([{ url: 'https://plants.example/green' }])
  const file = join(temporaryFolder(), 'openapi.json')
  writeFileSync(file, described)
  const spectral = join(import.meta.dirname, '../node_modules/.bin/spectral')
  const ruleset = join(import.meta.dirname, 'spectral.yaml')
  const args = ['lint', file, '--ruleset', ruleset, '--fail-severity', 'hint']
  expect(spawnSync(spectral, args, { encoding: 'utf8' }).stdout).toMatch(/^No results/)
})

test('every shared component of the description is referred to', () => {
  const { components } = JSON.parse(text) as { components: Record<string, object> }
  const { securitySchemes: _, ...shared } = components
  for (const [kind, named] of Object.entries(shared)) {
    expect(
      Object.keys(named).filter(name => !text.includes(`"#/components/${kind}/${name}"`)),
    ).toEqual([])
  }
})

test('the recorder of the contract finds out what departs from the description', () => {
  const { check } = createRecorder(text)
  const post = { method: 'POST', target: '/plants' }
  const read = { method: 'GET', target: '/plants/1' }
  const head = { method: 'HEAD', target: '/plants/1' }
  const patch = { method: 'PATCH', target: '/plants' }
  const nowhere = { method: 'GET', target: '/x' }
  const given = (status: number, body: string, headers: Record<string, string> = {}) => ({
    status,
    headers: new Map(Object.entries({ 'content-type': 'application/json', ...headers })),
    body: Buffer.from(body),
    interim: [],
  })
  const failure = (error: number) => JSON.stringify({ error, message: 'm' })
  for (const [asked, answer, fault] of [
    [read, given(200, '{"id":9223372036854775807,"name":"n"}'), ''],
    [head, given(200, ''), ''],
    [patch, given(405, failure(40501), { allow: 'GET, HEAD, POST' }), ''],
    [undefined, given(400, failure(40000)), ''],
    [post, given(404, failure(40402)), '404 is not declared'],
    [post, given(200, '{"name":null}'), '/name must be string'],
    [read, given(200, '{"id":9223372036854775808,"name":"n"}'), '/id'],
    [post, given(400, failure(40099)), 'not published'],
    [post, given(400, failure(41301)), 'another status'],
    [post, given(400, '{"error":40001,"message":"m","code":"x"}'), 'members'],
    [post, given(200, '{"name":"n"}', { 'content-type': 'text/html' }), 'content-type'],
    [post, given(401, failure(40101)), 'WWW-Authenticate'],
    [patch, given(405, failure(40501), { allow: 'GET' }), 'Allow'],
    [patch, given(404, failure(40401)), 'declared'],
    [nowhere, given(200, '{}'), 'nothing is declared'],
    [head, given(200, '{}'), 'HEAD'],
    [post, given(400, 'Bad Request'), 'not JSON'],
  ] as const) {
    if (fault === '') {
      check(asked, answer)
    } else {
      expect(() => check(asked, answer)).toThrow(fault)
    }
  }
})
