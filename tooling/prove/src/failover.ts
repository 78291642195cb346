import { chmodSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, temporaryFolder, until } from '@plant-store/harness'
import { History } from './history.ts'
import { readStore } from './kill.ts'
import { type Act, recorded } from './operations.ts'
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
  const history = new History()
  const { counts } = history
  const load = startLoad(recorded(program.operations, history))
  await sleep(loadMs)
  const primary = await primaryOf(nodes)
  const standby = nodes.find(node => node !== primary) as Node
  const killed = await primary.kill()
  const doneBefore = counts.done
  await until(
    'creates on the new primary',
    () => counts.done > doneBefore + clients,
    startTimeoutMs,
  )
  await sleep(loadMs)
  const failures = await load.stop()
  const { done } = counts
  if ((await primaryOf([standby])) !== standby) {
    failures.push('the standby is not the primary now')
  }
  failures.push(...history.settle(await readStore(program.operations)))
  if (!program.isRunning()) {
    failures.push('the program ended')
  }
  return {
    tried: [
      `a primary of ${killed} processes killed under ${clients} clients`,
      `${figure(done)} creates answered, ${figure(done - doneBefore)} of them afterwards`,
      `${figure(counts.refused + counts.unknown)} times 503`,
      `${(load.longestPauseMs() / 1000).toFixed(1)} s without a create (ttl ${ttl} s)`,
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

/** Runs clients that create plants with ids of their own. */
function startLoad(act: Act) {
  let nextId = 1n
  let isOver = false
  let longestPauseMs = 0
  let lastDoneMs = performance.now()
  const failures: string[] = []
  const work = async () => {
    while (!isOver) {
      const id = nextId++
      const { is } = await act('create', id, { name: `Plant ${id}` })
      if (is === 'done') {
        longestPauseMs = Math.max(longestPauseMs, performance.now() - lastDoneMs)
        lastDoneMs = performance.now()
      } else {
        await sleep(100)
      }
    }
  }
  const working = Promise.all(Array.from({ length: clients }, work)).catch(error =>
    failures.push(error.message),
  )
  return {
    longestPauseMs: () => longestPauseMs,
    async stop() {
      isOver = true
      await working
      return failures
    },
  }
}
