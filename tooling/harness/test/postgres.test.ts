import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { temporaryFolder } from '@plant-store/harness'
import { startPostgres } from '@plant-store/harness/postgres'
import { afterAll, expect, test, vi } from 'vitest'

const users = () => (existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8') : '')

const temporary = temporaryFolder()
const folder = temporary.path
chmodSync(folder, 0o755)
vi.stubEnv('TMPDIR', folder)
afterAll(() => temporary.remove())

test('a server that cannot start says why, and leaves no files and no user', async () => {
  const before = users()
  await expect(startPostgres({ max_connections: 'many' })).rejects.toThrow(
    /max_connections/,
  )
  expect(readdirSync(folder)).toEqual([])
  expect(users()).toBe(before)
})
