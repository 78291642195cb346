import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { freePort, type ServerProcess, startServer } from '@plant-store/bench/server-process'
import pg from 'pg'

const usage = `node src/failover.ts [--clients 32] [--seconds 5] [--ttl 20]
Two PostgreSQL servers under Patroni with synchronous replication, and the service on them under a load of creates.
The primary's machine dies: all its processes get SIGKILL at once. Then every answered create is looked for on the new one.
  --clients n    create one plant after another each
  --seconds n    before the primary dies, and again after the first create on the new one
  --ttl n        seconds after which Patroni takes a silent primary for dead; it knows no less than 20`

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    clients: { type: 'string', default: '32' },
    seconds: { type: 'string', default: '5' },
    ttl: { type: 'string', default: '20' },
  },
})

const password = 'drill'
const accessToken = 'drill-token-drill-token-drill-token'
const startTimeoutMs = 120_000
const folder = mkdtempSync(join(tmpdir(), 'plant-store-failover-'))
const binaries = postgresBinaries()
const owner = ownerOfPostgres()

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

try {
  if (values.help) console.log(usage)
  else process.exitCode = await main()
} catch (error) {
  console.error(`failover: ${(error as Error).message}`)
  process.exitCode = 1
}

async function main(): Promise<number> {
  const missing = [
    ...(binaries === undefined ? ['postgresql'] : []),
    ...(isThere('/usr/bin/etcd') ? [] : ['etcd-server']),
    ...(isThere('/usr/bin/patroni') ? [] : ['patroni']),
  ]
  if (missing.length > 0) {
    console.error(`failover: not installed here (Debian: apt-get install ${missing.join(' ')})`)
    return 2
  }
  chmodSync(folder, 0o755)

  await using stack = new AsyncDisposableStack()
  const etcdPort = await freePort()
  stack.use(await startEtcd(etcdPort))
  const nodes: Node[] = []
  for (const name of ['one', 'two']) {
    const node = stack.use(await startNode(name, etcdPort))
    nodes.push(node)
    await node.ready()
  }
  await until('a synchronous standby', async () => (await synchronousStandbys(nodes)) === 1)
  const [version] = await query<{ version: string }>(await primaryOf(nodes), 'select version()')
  console.log(`${version?.version.split(' on ')[0]} twice, one the synchronous standby of the other`)

  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')
  const service = stack.use(
    await startServer({
      command: [process.execPath, fileURLToPath(new URL('../../../apps/api/dist/main.js', import.meta.url))],
      logFile: join(folder, 'service.log'),
      env: port => ({
        PORT: String(port),
        DATABASE_URL: `postgres://postgres:${password}@${hosts}/postgres`,
        DATABASE_TIMEOUT: '3s',
        ACCESS_TOKENS: accessToken,
        LOG_LEVEL: 'warn',
      }),
    }),
  )

  const load = startLoad(service, Number(values.clients))
  await sleep(Number(values.seconds) * 1000)
  const primary = await primaryOf(nodes)
  const standby = nodes.find(node => node !== primary) as Node
  const answeredBefore = load.answered.size
  const killedAtMs = performance.now()
  const killed = primary.kill()
  console.log(`${answeredBefore} creates answered; the primary dies (${killed} processes)`)
  await until('a create on the new primary', async () => load.succeededSince(killedAtMs + 2_000))
  await sleep(Number(values.seconds) * 1000)
  await load.stop()

  const rows = await query<{ id: string; name: string }>(standby, 'select id, name from plants')
  const kept = new Map(rows.map(({ id, name }) => [Number(id), name]))
  const lost = [...load.answered].filter(id => kept.get(id) !== nameOf(id))
  const isPrimary = (await primaryOf([standby])) === standby
  service.assertRunning()

  console.log(`
${load.answered.size} creates answered with 200, ${load.answered.size - answeredBefore} of them after the primary died
${load.refused} times 503, the slowest answer after ${Math.round(load.slowestMs)} ms
${load.settled.size} creates whose first answer was 503 turned out to be kept: 400, id taken, at the retry
${(load.longestPauseMs / 1000).toFixed(1)} s without a successful create (Patroni's ttl ${values.ttl} s)
${lost.length} answered creates missing on the new primary
${load.wrong.length} wrong answers${load.wrong.length > 0 ? `, such as: ${load.wrong[0]}` : ''}
the service is the process ${service.pid} that was started, and runs`)
  return lost.length === 0 && load.wrong.length === 0 && isPrimary && load.answered.size > answeredBefore
    ? 0
    : 1
}

function nameOf(id: number): string {
  return `Plant ${id}`
}

/** Clients that create plants with ids of their own, and come again with the same plant while they get 503. */
function startLoad(service: ServerProcess, clients: number) {
  const answered = new Set<number>()
  const settled = new Set<number>()
  const wrong: string[] = []
  let refused = 0
  let slowestMs = 0
  let longestPauseMs = 0
  let lastSuccessMs = performance.now()
  let next = 1
  let running = true

  const create = async (id: number) => {
    for (let attempt = 1; running; attempt++) {
      const startedMs = performance.now()
      const answer = await fetch(`${service.url}/plants`, {
        method: 'POST',
        headers: { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json' },
        body: JSON.stringify({ id, name: nameOf(id) }),
      })
      const body = (await answer.json()) as { error?: number }
      slowestMs = Math.max(slowestMs, performance.now() - startedMs)
      if (answer.status === 200) {
        answered.add(id)
        longestPauseMs = Math.max(longestPauseMs, performance.now() - lastSuccessMs)
        lastSuccessMs = performance.now()
        return
      }
      if (answer.status === 503 && answer.headers.has('retry-after')) {
        refused++
        await sleep(100)
      } else if (body.error === 40003 && attempt > 1) {
        settled.add(id)
        return
      } else {
        wrong.push(`${answer.status} ${JSON.stringify(body)}`)
        return
      }
    }
  }
  const workers = Promise.all(
    Array.from({ length: clients }, async () => {
      while (running) await create(next++)
    }),
  )
  // Whoever stops the load hears of it.
  workers.catch(() => {})

  return {
    answered,
    settled,
    wrong,
    get refused() {
      return refused
    },
    get slowestMs() {
      return slowestMs
    },
    get longestPauseMs() {
      return longestPauseMs
    },
    async succeededSince(atMs: number) {
      await Promise.race([workers, sleep(0)])
      return lastSuccessMs > atMs
    },
    async stop() {
      running = false
      await workers
    },
  }
}

interface Node extends AsyncDisposable {
  readonly port: number
  /** Resolves once its PostgreSQL answers. */
  ready(): Promise<void>
  /** Ends Patroni, PostgreSQL and all that they started at once. @returns how many processes that were */
  kill(): number
}

async function startNode(name: string, etcdPort: number): Promise<Node> {
  const [port, restPort] = [await freePort(), await freePort()]
  const dataDir = join(folder, name, 'data')
  ownedFolder(join(folder, name))
  const ttl = Number(values.ttl)
  const configuration = {
    scope: 'plants',
    name,
    restapi: { listen: `127.0.0.1:${restPort}`, connect_address: `127.0.0.1:${restPort}` },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        ttl,
        loop_wait: Math.floor(ttl / 4),
        retry_timeout: Math.floor(ttl / 4),
        synchronous_mode: true,
        postgresql: { use_pg_rewind: true, parameters: { max_connections: 50 } },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'data-checksums'],
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: dataDir,
      bin_dir: binaries,
      pgpass: join(folder, name, 'pgpass'),
      authentication: {
        superuser: { username: 'postgres', password },
        replication: { username: 'replicator', password },
      },
      parameters: { unix_socket_directories: join(folder, name) },
      pg_hba: [
        'local all all trust',
        'host all all 127.0.0.1/32 md5',
        'host replication all 127.0.0.1/32 md5',
      ],
    },
  }
  // YAML takes JSON.
  const file = join(folder, name, 'patroni.yml')
  writeFileSync(file, JSON.stringify(configuration, null, 2))
  const patroni = start('/usr/bin/patroni', [file], join(folder, name, 'log'))

  const postmaster = () => {
    try {
      return Number(readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')[0])
    } catch {
      return undefined
    }
  }
  /** All at once, as when the power goes. */
  const kill = () => {
    const pids = new Set(descendants([patroni.pid as number, postmaster() ?? (patroni.pid as number)]))
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It ended with another.
      }
    }
    return pids.size
  }
  process.once('exit', kill)
  const node: Node = {
    port,
    ready: () =>
      until(`PostgreSQL of node ${name}`, async () => {
        if (patroni.exitCode !== null) {
          throw new Error(`Patroni ended:\n${readFileSync(join(folder, name, 'log'), 'utf8').slice(-2000)}`)
        }
        return (await query(node, 'select 1')).length === 1
      }),
    kill,
    async [Symbol.asyncDispose]() {
      if (patroni.exitCode !== null || patroni.signalCode !== null) return
      const ended = once(patroni, 'exit')
      kill()
      await ended
    },
  }
  return node
}

async function startEtcd(port: number): Promise<AsyncDisposable> {
  ownedFolder(join(folder, 'etcd'))
  const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${await freePort()}`]
  const etcd = start(
    '/usr/bin/etcd',
    [
      ...['--data-dir', join(folder, 'etcd', 'data'), '--listen-client-urls', client],
      ...['--advertise-client-urls', client, '--listen-peer-urls', peer],
      ...['--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`],
    ],
    join(folder, 'etcd', 'log'),
  )
  await until('etcd', async () => (await fetch(`${client}/health`)).ok)
  return {
    async [Symbol.asyncDispose]() {
      const ended = once(etcd, 'exit')
      etcd.kill('SIGKILL')
      await ended
    },
  }
}

function start(program: string, parameters: readonly string[], logFile: string): ChildProcess {
  const log = openSync(logFile, 'a')
  const { PATH } = process.env
  const child = spawn(program, parameters, {
    stdio: ['ignore', log, log],
    cwd: folder,
    env: { PATH, HOME: folder, LC_ALL: 'C.UTF-8' },
    ...owner,
  })
  closeSync(log)
  child.on('error', error => console.error(`failover: ${program}: ${error.message}`))
  process.once('exit', () => child.kill('SIGKILL'))
  return child
}

async function primaryOf(nodes: readonly Node[]): Promise<Node> {
  for (const node of nodes) {
    const [row] = await query<{ standby: boolean }>(node, 'select pg_is_in_recovery() as standby')
    if (row?.standby === false) return node
  }
  throw new Error('no node is the primary')
}

async function synchronousStandbys(nodes: readonly Node[]): Promise<number> {
  const sql = `select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'`
  return (await query(await primaryOf(nodes), sql)).length
}

async function query<Row>({ port }: Node, sql: string): Promise<Row[]> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', password, database: 'postgres' })
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query(sql)).rows as Row[]
  } finally {
    await client.end()
  }
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const giveUpAtMs = performance.now() + startTimeoutMs
  let reason = 'it is not so'
  while (performance.now() < giveUpAtMs) {
    try {
      if (await isSo()) return
    } catch (error) {
      reason = (error as Error).message
      if (reason.startsWith('Patroni ended')) throw error
    }
    await sleep(100)
  }
  throw new Error(`waited too long for ${what}: ${reason}`)
}

function descendants(roots: readonly number[]): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
      children.set(parent, [...(children.get(parent) ?? []), Number(name)])
    } catch {
      // It has ended.
    }
  }
  const found = [...roots]
  for (const pid of found) found.push(...(children.get(pid) ?? []))
  return found
}

function postgresBinaries(): string | undefined {
  try {
    const [newest] = readdirSync('/usr/lib/postgresql').sort((a, b) => Number(b) - Number(a))
    return newest && join('/usr/lib/postgresql', newest, 'bin')
  } catch {
    return undefined
  }
}

/** PostgreSQL does not run as root. */
function ownerOfPostgres(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  try {
    return { uid: id('-u'), gid: id('-g') }
  } catch {
    return undefined
  }
}

function ownedFolder(path: string): void {
  mkdirSync(path, { mode: 0o700 })
  if (owner) chownSync(path, owner.uid, owner.gid)
}

function isThere(file: string): boolean {
  try {
    accessSync(file)
    return true
  } catch {
    return false
  }
}
