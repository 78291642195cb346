import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))

test('a program whose log nobody reads any more stops when it is told to', async () => {
  const child = spawn(process.execPath, [main], {
    env: { PORT: '0', DATABASE_URL: 'file::memory:', ACCESS_TOKENS: 'given' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  for await (const text of child.stdout.setEncoding('utf8')) if (text.includes('"listening"')) break
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
})
