import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { temporaryFolder } from '@plant-store/harness'
import { createDatabase, startPostgres } from '@plant-store/harness/postgres'
import { afterAll, expect, test, vi } from 'vitest'

const users = () => (existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8') : '')

const temporary = temporaryFolder()
const folder = temporary.path
chmodSync(folder, 0o755)
vi.stubEnv('TMPDIR', folder)
afterAll(() => temporary.remove())

test('a server starts, is killed, starts again with what it had and leaves nothing; no user is added', async () => {
  const before = users()
  {
    await using server = await startPostgres()
    await using database = await createDatabase(server.url)
    await database.query('create table kept as select 1 as one')
    await server.kill()
    await server.start()
    expect(await database.query('select one from kept')).toEqual([{ one: 1 }])
    await server.stop()
    await server.start()
    expect(await database.query('select one from kept')).toEqual([{ one: 1 }])
  }
  expect(users()).toBe(before)
  expect(readdirSync(folder)).toEqual([])
})

test('a server that cannot start says why', async () => {
  await expect(startPostgres({ max_connections: 'many' })).rejects.toThrow(/max_connections/)
  expect(readdirSync(folder)).toEqual([])
})

test('a process that ends without disposing of its server ends with its own exit code, and the server ends', () => {
  const program = `
    import { startPostgres } from '@plant-store/harness/postgres'
    console.log((await startPostgres()).url)
    process.exit(3)
  `
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 3, stderr: '' })
  expect(stdout).toMatch(/^postgres:/)
})
