import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { isInstalled, startServer } from '@plant-store/harness'
import { commandProgram } from '@plant-store/harness/command'
import { needs } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { Place } from '../place.ts'

const root = new URL('../../../../', import.meta.url)

/** The blocks of a language in a page. */
function blocks(page: string, language: string): readonly string[] {
  const text = readFileSync(new URL(page, root), 'utf8')
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, block]) => block as string,
  )
}

/** Each command of a page's sessions with what it prints. */
const sessionOf = (page: string) =>
  blocks(page, 'console')
    .flatMap(text => text.split(/^\$ /m).filter(Boolean))
    .map(text => {
      const [command = '', ...printed] = text.trimEnd().split('\n')
      return { command, printed: printed.join('\n') }
    })

const curl = needs('curl', isInstalled('curl'))

test.each([
  ['README.md', 'npx --yes pnpm@12 plant-store'],
  ['docs/http.md', 'plant-store'],
])('the session of %s (%s …) goes as it says', curl, async (page, program) => {
  await using place = new Place()
  const command = [process.execPath, commandProgram, 'serve'] as const
  const environment = { ACCESS_TOKENS: 'plantstore_of-the-first-start' }
  await using server = await startServer({ command, databaseUrl: place.url, environment })
  const session = sessionOf(page)
  expect(session.length).toBeGreaterThan(3)
  // One shell, as a command sets variables for those after it. On a pipe, curl would
  // show its progress.
  const asOnTerminal = `exec 2>&1\ncurl() { command curl -s "$@"; }\n`
  const commands = session
    .map(({ command }) => `${command}\nprintf '\\0'\n`)
    .join('')
    .replaceAll('http://127.0.0.1:3000', server.url)
    .replaceAll('plantstore_…', environment.ACCESS_TOKENS)
    .replaceAll(`(${program}`, `('${process.execPath}' '${commandProgram}'`)
  const { stdout } = spawnSync('/bin/sh', ['-c', asOnTerminal + commands], {
    cwd: place.folder,
    env: { PATH: process.env['PATH'], DATABASE_URL: place.url },
    encoding: 'utf8',
  })
  const printed = stdout.split('\0')
  const actual = session.map(({ command }, n) => {
    return { command, printed: printed[n]?.trimEnd() }
  })
  expect(actual).toEqual(session)
  expect(await server.end()).toBe(0)
  expect(server.errors()).toBe('')
})
