import { copyFileSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { launch, serverProgram, until } from '@plant-store/harness'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'

const page = readFileSync(
  new URL('../../../../docs/operating.md', import.meta.url),
  'utf8',
)

test('a log file that logrotate has copied and cut loses nothing', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'plant-store.log')
  const linesOf = (path: string) => readFileSync(path, 'utf8').split('\n').slice(0, -1)
  const [, redirection] = /^plant-store serve (>>) \S+\.log$/m.exec(page) ?? []
  expect(page).toContain('\n  copytruncate\n')
  await using program = launch(
    [
      '/bin/sh',
      '-c',
      `exec "$0" "$1" ${redirection} ${file}`,
      process.execPath,
      serverProgram,
    ],
    { folder, environment: { PORT: '0', HTTP_THREADS: '1' } },
  )
  await until('it serves', () => linesOf(file).length > 1)

  // Do what copytruncate does.
  copyFileSync(file, `${file}.1`)
  truncateSync(file)
  expect(await program.end()).toBe(0)

  const messages = [...linesOf(`${file}.1`), ...linesOf(file)].map(
    line => JSON.parse(line).msg,
  )
  expect(messages.filter(message => !message.startsWith('there is no'))).toEqual([
    'listening',
    'stopping',
    'stopped',
  ])
})
