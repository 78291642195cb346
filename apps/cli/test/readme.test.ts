import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { startServer } from '@plant-store/harness'
import { commandProgram } from '@plant-store/harness/command'
import { needs } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { Place } from './place.ts'

const root = new URL('../../../', import.meta.url)
const readme = readFileSync(new URL('README.md', root), 'utf8')
const blocks = (language: string) =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, text]) => text as string,
  )

/** Each command of a session with what it prints. */
const session = blocks('console')
  .flatMap(text => text.split(/^\$ /m).filter(Boolean))
  .map(text => {
    const [command = '', ...printed] = text.trimEnd().split('\n')
    return { command, printed }
  })

const curl = needs('curl', spawnSync('curl', ['--version']).status === 0)

test('the session of the README goes as it says', curl, async () => {
  await using place = new Place()
  await using server = await startServer({ databaseUrl: place.url, environment: { ACCESS_TOKENS: 'given' } })
  expect(session.length).toBeGreaterThan(4)
  // A version is random. The reader puts it in ETAG, as this does.
  let version = { shown: '', real: '' }
  for (const { command, printed } of session) {
    expect(command).toContain('http://127.0.0.1:3000')
    const script = command.replaceAll('http://127.0.0.1:3000', server.url)
    const { stdout } = spawnSync('/bin/sh', ['-c', script], {
      env: { PATH: process.env['PATH'], TOKEN: 'given', ETAG: version.real },
      encoding: 'utf8',
    })
    const lines = stripVTControlCharacters(stdout).trimEnd().split(/\r?\n/)
    const [shown, real] = [printed, lines].map(each => each.find(line => line.startsWith('etag: "')))
    if (shown !== undefined && real !== undefined) {
      version = { shown: shown.slice('etag: '.length), real: real.slice('etag: '.length) }
      expect(readme).toContain(`export ETAG='${version.shown}'`)
    }
    const expected = printed.map(line => (line === shown ? real : line))
    // Fields of the header that matter little are left out.
    expect([command, lines.filter(line => expected.includes(line))]).toEqual([command, expected])
    expect(lines.at(-1)).toBe(expected.at(-1))
  }
})

test('the other commands of the README work, here or in another test', async () => {
  const commands = blocks('sh').flatMap(text =>
    text
      .trimEnd()
      .split('\n')
      .map(line => line.replace(/ +#.*/, '')),
  )
  const elsewhere: Readonly<Record<string, readonly [file: string, words: string]>> = {
    'npx --yes pnpm@12 start': ['tooling/release/test/clone.test.ts', "startPnpm(['start']"],
    'npx --yes pnpm@12 test': ['.ci/run', 'npx --yes pnpm@12 test'],
    'npm install --global plant-store': ['tooling/release/test/install.ts', "start('npm', ['install'"],
  }
  for (const [file, words] of Object.values(elsewhere)) {
    expect(readFileSync(new URL(file, root), 'utf8')).toContain(words)
  }
  const here = commands.filter(command => !(command in elsewhere))
  expect(commands.filter(command => command in elsewhere)).toEqual(Object.keys(elsewhere))
  expect(here.map(command => command.split(' ').slice(0, 2).join(' '))).toEqual([
    'plant-store serve',
    'plant-store token',
    'plant-store import',
    'plant-store backup',
  ])

  await using place = new Place()
  const program = place.path('plant-store')
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${commandProgram}' "$@"\n`, { mode: 0o755 })
  writeFileSync(place.path('plants.ndjson'), '{"id":1,"name":"Monstera"}\n')
  const environment = { PATH: `${place.folder}:${process.env['PATH']}`, DATABASE_URL: place.url }
  const [serve = '', ...others] = here
  await using _server = await startServer({
    command: ['/bin/sh', '-c', `exec ${serve}`],
    folder: place.folder,
    environment,
  })
  for (const command of others) {
    const { status, stderr } = spawnSync('/bin/sh', ['-c', command], {
      cwd: place.folder,
      env: environment,
      encoding: 'utf8',
    })
    expect([command, status]).toEqual([command, 0])
    expect(stderr).not.toMatch(/^plant-store: /m)
  }
  expect(await place.count()).toBe(1)
})
