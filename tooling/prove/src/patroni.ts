import { execFileSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { freePort, launch, type Program, until } from '@plant-store/harness'
import { query, userOf } from '@plant-store/harness/postgres'

/** The seconds until Patroni takes a silent primary for dead, its least. */
export const ttl = 20
export const startTimeoutMs = 120_000
export const password = 'drill'
const postgresFolder = '/usr/lib/postgresql'

/** The missing Debian packages. */
export function missingPackages(): string[] {
  const needed = {
    postgresql: postgresFolder,
    'etcd-server': '/usr/bin/etcd',
    patroni: '/usr/bin/patroni',
  }
  return Object.entries(needed).flatMap(([name, file]) =>
    existsSync(file) ? [] : [name],
  )
}

/** A machine with Patroni and its PostgreSQL. */
export type Node = Awaited<ReturnType<typeof startNode>>

export async function startNode(folder: string, name: string, etcdPort: number) {
  const place = ownedFolder(join(folder, name))
  const port = await freePort()
  const ports = { etcd: etcdPort, own: port, rest: await freePort() }
  const configuration = configurationOf(name, place, ports)
  // JSON is YAML.
  const file = join(place, 'patroni.yml')
  writeFileSync(file, JSON.stringify(configuration, null, 2))
  const patroni = startOwned(folder, name, ['/usr/bin/patroni', file])
  const pidFile = join(place, 'data', 'postmaster.pid')
  /**
   * Kills Patroni, PostgreSQL and all their children at once, like a power cut. Resolves
   * to their number.
   */
  const kill = async () => {
    const roots = patroni.isRunning() ? [patroni.pid] : []
    if (existsSync(pidFile)) {
      roots.push(Number.parseInt(readFileSync(pidFile, 'utf8'), 10))
    }
    const pids = new Set(descendants(roots))
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
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
  const answers = async () => {
    patroni.assertRunning()
    return (await query(url, 'select 1')).length === 1
  }
  await until(`PostgreSQL of ${name}`, answers, startTimeoutMs).catch(async error => {
    await kill()
    throw error
  })
  return { port, url, kill }
}

/** Returns the configuration of Patroni on a node. */
function configurationOf(
  name: string,
  place: string,
  ports: Readonly<Record<'etcd' | 'own' | 'rest', number>>,
) {
  const address = `127.0.0.1:${ports.own}`
  const restAddress = `127.0.0.1:${ports.rest}`
  const versions = readdirSync(postgresFolder).map(Number)
  const newest = `${Math.max(...versions)}`
  return {
    scope: 'plants',
    name,
    restapi: { listen: restAddress, connect_address: restAddress },
    etcd3: { host: `127.0.0.1:${ports.etcd}` },
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
}

export async function startEtcd(folder: string, port: number): Promise<Program> {
  const place = ownedFolder(join(folder, 'etcd'))
  const client = `http://127.0.0.1:${port}`
  const peer = `http://127.0.0.1:${await freePort()}`
  const etcd = startOwned(folder, 'etcd', [
    '/usr/bin/etcd',
    `--data-dir=${join(place, 'data')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ])
  await until('etcd', async () => (await fetch(`${client}/health`)).ok, startTimeoutMs)
  return etcd
}

function startOwned(
  folder: string,
  name: string,
  command: readonly [string, ...string[]],
): Program {
  const { PATH } = process.env
  return launch(command, {
    folder,
    environment: { PATH, HOME: folder, LC_ALL: 'C.UTF-8' },
    owner: userOf('postgres'),
    logFile: join(folder, name, 'log'),
  })
}

export async function primaryOf(nodes: readonly Node[]): Promise<Node> {
  for (const node of nodes) {
    const [{ standby } = {}] = await query(
      node.url,
      'select pg_is_in_recovery() as standby',
    )
    if (standby === false) {
      return node
    }
  }
  throw new Error('no node is the primary')
}

export async function synchronousStandbys(nodes: readonly Node[]): Promise<number> {
  const sql = `select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'`
  return (await query((await primaryOf(nodes)).url, sql)).length
}

function descendants(roots: readonly number[]): number[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
  const processes = lines.map(line => line.trim().split(/ +/).map(Number))
  const found = [...roots]
  for (const root of found) {
    found.push(
      ...processes.flatMap(([pid = 0, parent]) => (parent === root ? [pid] : [])),
    )
  }
  return found
}

function ownedFolder(path: string) {
  mkdirSync(path, { mode: 0o700 })
  const user = userOf('postgres')
  if (user) {
    chownSync(path, user.uid, user.gid)
  }
  return path
}
