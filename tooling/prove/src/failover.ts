import { chmodSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, temporaryFolder, until } from '@plant-store/harness'
import { query } from '@plant-store/harness/postgres'
import { type Client, jsonOf, toJson } from '@plant-store/http/testing'
import { type Finding, figure } from './part.ts'
import {
  missingPackages,
  type Node,
  password,
  primaryOf,
  startEtcd,
  startNode,
  startTimeoutMs,
  synchronousStandbys,
  ttl,
} from './patroni.ts'
import { startProgram } from './program.ts'

const clients = 32
/** Before the primary dies, and again after the first create on the new one. */
const loadMs = 5_000

/**
 * Runs the program under a load of creates on two PostgreSQL servers with Patroni and
 * synchronous replication. Then the primary's machine dies: all its processes get SIGKILL
 * at once. Every answered create must be on the new primary.
 */
export async function runFailover(): Promise<Finding> {
  const missing = missingPackages()
  if (missing.length > 0) {
    const skipped = [
      `a primary that dies: not installed here (apt-get install ${missing.join(' ')})`,
    ]
    return { tried: 'nothing', times: 0, failures: [], skipped }
  }
  await using stack = new AsyncDisposableStack()
  const nodes = await startCluster(stack)

  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')
  const program = stack.use(
    await startProgram({
      databaseUrl: `postgres://postgres:${password}@${hosts}/postgres`,
      environment: { DATABASE_TIMEOUT: '3s' },
    }),
  )
  const load = startLoad(program.client)
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
    (await query(standby.url, 'select id, name from plants')).map(({ id, name }) => [
      BigInt(`${id}`),
      name,
    ]),
  )
  const lost = [...load.answered].filter(id => kept.get(id) !== nameOf(id))
  const failures = [
    ...load.failures,
    ...lost.map(id => `plant ${id} was answered and is not there`),
  ]
  if ((await primaryOf([standby])) !== standby) {
    failures.push('the standby is not the primary now')
  }
  if (load.answered.size <= answeredBefore) {
    failures.push('no create was answered after the primary died')
  }
  if (!program.isRunning()) {
    failures.push('the program ended')
  }
  return {
    tried: [
      `a primary of ${killed} processes killed under ${clients} clients`,
      `${figure(load.answered.size)} creates answered, ${figure(load.answered.size - answeredBefore)} of them afterwards`,
      `${figure(load.refused)} times 503`,
      `${(load.longestPauseMs / 1000).toFixed(1)} s without a create (ttl ${ttl} s)`,
    ].join('; '),
    times: 1,
    failures,
  }
}

/** Starts two nodes that replicate, and etcd for them. */
async function startCluster(stack: AsyncDisposableStack): Promise<readonly Node[]> {
  const folder = stack.use(temporaryFolder()).path
  chmodSync(folder, 0o755)
  const etcdPort = await freePort()
  stack.use(await startEtcd(folder, etcdPort))
  const nodes: Node[] = []
  for (const name of ['one', 'two']) {
    const node = await startNode(folder, name, etcdPort)
    nodes.push(node)
    stack.defer(async () => void (await node.kill()))
  }
  const hasStandby = async () => (await synchronousStandbys(nodes)) === 1
  await until('a synchronous standby', hasStandby, startTimeoutMs)
  return nodes
}

const nameOf = (id: bigint) => `Plant ${id}`

const isRefusal = ({ status, headers }: Awaited<ReturnType<Client['ask']>>) =>
  status === 503 && headers.has('retry-after')

/**
 * Runs clients that create plants with ids of their own, and repeat a create that got
 * 503.
 */
function startLoad(client: Client) {
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
  const noteSuccess = (id: bigint) => {
    const pauseMs = performance.now() - load.lastSuccessMs
    load.answered.add(id)
    load.longestPauseMs = Math.max(load.longestPauseMs, pauseMs)
    load.lastSuccessMs = performance.now()
  }
  const create = async (id: bigint) => {
    for (let attempt = 1; !isOver; attempt++) {
      const answer = await client.ask('POST', '/plants', {
        body: toJson({ id, name: nameOf(id) }),
      })
      if (answer.status === 200) {
        noteSuccess(id)
        return
      }
      // A create that got 503 may have been kept. Then the retry finds its id taken.
      const { error } = jsonOf(answer) as { error: bigint }
      const isKept = error === 40003n && attempt > 1
      if (isKept) {
        return
      }
      if (!isRefusal(answer)) {
        throw new Error(`a create was answered with ${answer.status} ${answer.body}`)
      }
      load.refused++
      await sleep(100)
    }
  }
  const work = async () => {
    while (!isOver) {
      await create(next++)
    }
  }
  const working = Promise.all(Array.from({ length: clients }, work)).catch(error =>
    load.failures.push(error.message),
  )
  return load
}
