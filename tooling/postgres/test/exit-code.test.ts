import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const exitCodeOf = (program: string) =>
  spawnSync(process.execPath, ['--input-type=module', '-e', `import '@plant-store/postgres'; ${program}`], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    encoding: 'utf8',
  })

test('who uses it ends with the exit code that was set, so that tests that fail are heard of', () => {
  expect(exitCodeOf('process.exitCode = 3')).toMatchObject({ status: 3, stderr: '' })
  expect(exitCodeOf('setTimeout(() => { process.exitCode = 1 }, 10)')).toMatchObject({
    status: 1,
    stderr: '',
  })
  expect(exitCodeOf('')).toMatchObject({ status: 0, stderr: '' })
})
