import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, launch, type Program, temporaryFolder, until } from '@plant-store/harness'
import { query } from '@plant-store/harness/postgres'
import type { Operations } from './operations.ts'
import { type Finding, figure, type Part } from './part.ts'
import { startProgram } from './program.ts'

export const failoverPart: Part = { name: 'failover', share: 0.1, run: runFailover }

const clients = 32
/** Before the primary dies, and again after the first create on the new one. */
const loadMs = 5_000
/** Seconds after which Patroni takes a silent primary for dead; it knows no less. */
const ttl = 20
const startTimeoutMs = 120_000
const password = 'drill'
const postgresFolder = '/usr/lib/postgresql'
const owner = ownerOfPostgres()

/**
 * Two PostgreSQL servers under Patroni with synchronous replication, and the program on them under a load of creates.
 * The primary's machine dies: all its processes get SIGKILL at once. Every answered create must be on the new one.
 */
async function runFailover(): Promise<Finding> {
  const missing = Object.entries({
    postgresql: postgresFolder,
    'etcd-server': '/usr/bin/etcd',
    patroni: '/usr/bin/patroni',
  }).flatMap(([name, file]) => (existsSync(file) ? [] : [name]))
  if (missing.length > 0) {
    const skipped = [`a primary that dies: not installed here (apt-get install ${missing.join(' ')})`]
    return { tried: 'nothing', times: 0, failures: [], skipped }
  }
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(temporaryFolder()).path
  chmodSync(folder, 0o755)
  const etcdPort = await freePort()
  stack.use(await startEtcd(folder, etcdPort))
  const nodes: Node[] = []
  for (const name of ['one', 'two']) {
    const node = await startNode(folder, name, etcdPort)
    nodes.push(node)
    stack.defer(async () => void (await node.kill()))
    await until(`PostgreSQL of ${name}`, () => answers(node), startTimeoutMs)
  }
  await until('a synchronous standby', async () => (await synchronousStandbys(nodes)) === 1, startTimeoutMs)

  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')
  const program = stack.use(
    await startProgram({
      databaseUrl: `postgres://postgres:${password}@${hosts}/postgres`,
      environment: { DATABASE_TIMEOUT: '3s' },
    }),
  )
  const load = startLoad(program.operations)
  await sleep(loadMs)
  const primary = await primaryOf(nodes)
  const standby = nodes.find(node => node !== primary) as Node
  const answeredBefore = load.answered.size
  const killedAtMs = performance.now()
  const killed = await primary.kill()
  await until(
    'a create on the new primary',
    () => load.lastSuccessMs > killedAtMs + 2_000,
    startTimeoutMs,
  ).catch(error => load.failures.push((error as Error).message))
  await sleep(loadMs)
  await load.stop()

  const kept = new Map(
    (await query(standby.url, 'select id, name from plants')).map(({ id, name }) => [BigInt(`${id}`), name]),
  )
  const lost = [...load.answered].filter(id => kept.get(id) !== nameOf(id))
  const failures = [...load.failures, ...lost.map(id => `plant ${id} was answered and is not there`)]
  if ((await primaryOf([standby])) !== standby) failures.push('the standby is not the primary now')
  if (load.answered.size <= answeredBefore) failures.push('no create was answered after the primary died')
  if (!program.isRunning()) failures.push('the program ended')
  return {
    tried: [
      `a primary of ${killed} processes killed under ${clients} clients`,
      `${figure(load.answered.size)} creates answered, ${figure(load.answered.size - answeredBefore)} of them afterwards`,
      `${figure(load.refused)} times 503`,
      `${(load.longestPauseMs / 1000).toFixed(1)} s without a create (ttl ${ttl} s)`,
    ].join('; '),
    times: 1,
    failures,
    lost: lost.length,
  }
}

const nameOf = (id: bigint) => `Plant ${id}`

/** Clients that create plants with ids of their own, and come again with the same plant while they get 503. */
function startLoad(operations: Operations) {
  let next = 1n
  let isOver = false
  const load = {
    answered: new Set<bigint>(),
    failures: [] as string[],
    refused: 0,
    longestPauseMs: 0,
    lastSuccessMs: performance.now(),
    async stop() {
      isOver = true
      await working
    },
  }
  const create = async (id: bigint) => {
    for (let attempt = 1; !isOver; attempt++) {
      const { is } = await operations.create(id, { name: nameOf(id) })
      if (is === 'done') {
        load.answered.add(id)
        load.longestPauseMs = Math.max(load.longestPauseMs, performance.now() - load.lastSuccessMs)
        load.lastSuccessMs = performance.now()
        return
      }
      // What was told 503 may have been kept: then the id is taken at the retry.
      if (is === 'taken' && attempt > 1) return
      if (is === 'taken' || is === 'absent') {
        load.failures.push(`a create of a new id found it ${is}`)
        return
      }
      load.refused++
      await sleep(100)
    }
  }
  const work = async () => {
    while (!isOver) await create(next++)
  }
  const working = Promise.all(Array.from({ length: clients }, work)).catch(error =>
    load.failures.push(error.message),
  )
  return load
}

interface Node {
  readonly port: number
  readonly url: string
  readonly patroni: Program
  /** Ends Patroni, PostgreSQL and all that they started at once, as when the power goes. Resolves to how many. */
  kill(): Promise<number>
}

async function startNode(folder: string, name: string, etcdPort: number): Promise<Node> {
  const [port, restPort] = [await freePort(), await freePort()]
  const place = ownedFolder(join(folder, name))
  const [newest = ''] = readdirSync(postgresFolder).sort((a, b) => Number(b) - Number(a))
  const address = `127.0.0.1:${port}`
  const restAddress = `127.0.0.1:${restPort}`
  const configuration = {
    scope: 'plants',
    name,
    restapi: { listen: restAddress, connect_address: restAddress },
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
      listen: address,
      connect_address: address,
      data_dir: join(place, 'data'),
      bin_dir: join(postgresFolder, newest, 'bin'),
      pgpass: join(place, 'pgpass'),
      authentication: {
        superuser: { username: 'postgres', password },
        replication: { username: 'replicator', password },
      },
      parameters: { unix_socket_directories: place },
      pg_hba: [
        'local all all trust',
        'host all all 127.0.0.1/32 md5',
        'host replication all 127.0.0.1/32 md5',
      ],
    },
  }
  // YAML takes JSON.
  const file = join(place, 'patroni.yml')
  writeFileSync(file, JSON.stringify(configuration, null, 2))
  const patroni = startOwned(folder, name, ['/usr/bin/patroni', file])
  const postmaster = () => {
    const pidFile = join(place, 'data', 'postmaster.pid')
    return existsSync(pidFile) ? [Number(readFileSync(pidFile, 'utf8').split('\n')[0])] : []
  }
  const kill = async () => {
    const pids = new Set(descendants([...(patroni.isRunning() ? [patroni.pid] : []), ...postmaster()]))
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It ended with another.
      }
    }
    await patroni.ended
    return pids.size
  }
  return { port, url: `postgres://postgres:${password}@${address}/postgres`, patroni, kill }
}

async function answers({ patroni, url }: Node): Promise<boolean> {
  patroni.assertRunning()
  return (await query(url, 'select 1')).length === 1
}

async function startEtcd(folder: string, port: number): Promise<Program> {
  const place = ownedFolder(join(folder, 'etcd'))
  const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${await freePort()}`]
  const etcd = startOwned(folder, 'etcd', [
    '/usr/bin/etcd',
    ...['--data-dir', join(place, 'data'), '--listen-client-urls', client],
    ...['--advertise-client-urls', client, '--listen-peer-urls', peer],
    ...['--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`],
  ])
  await until('etcd', async () => (await fetch(`${client}/health`)).ok, startTimeoutMs)
  return etcd
}

function startOwned(folder: string, name: string, command: readonly [string, ...string[]]): Program {
  const { PATH } = process.env
  const environment = { PATH, HOME: folder, LC_ALL: 'C.UTF-8' }
  return launch(command, { folder, environment, owner, logFile: join(folder, name, 'log') })
}

async function primaryOf(nodes: readonly Node[]): Promise<Node> {
  for (const node of nodes) {
    const [{ standby } = {}] = await query(node.url, 'select pg_is_in_recovery() as standby')
    if (standby === false) return node
  }
  throw new Error('no node is the primary')
}

async function synchronousStandbys(nodes: readonly Node[]): Promise<number> {
  const sql = `select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'`
  return (await query((await primaryOf(nodes)).url, sql)).length
}

function descendants(roots: readonly number[]): number[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  const processes = lines.map(line => line.trim().split(/ +/).map(Number))
  const found = [...roots]
  for (const root of found)
    found.push(...processes.flatMap(([pid = 0, parent]) => (parent === root ? [pid] : [])))
  return found
}

/** PostgreSQL does not run as root. */
function ownerOfPostgres(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8')) ?? []
  return uid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
}

function ownedFolder(path: string): string {
  mkdirSync(path, { mode: 0o700 })
  if (owner) chownSync(path, owner.uid, owner.gid)
  return path
}
