import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import { type Contestant, contestants, ours, start } from './contestants.ts'
import { measure } from './load.ts'
import { table } from './table.ts'

/** As V8 writes it, for each thread. */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string }
  }[]
  readonly samples: readonly number[]
  /** The time since the sample before, in microseconds. */
  readonly timeDeltas: readonly number[]
}

const create64 = { request: 'create', connections: 64 } as const
/** Fewer than were measured: the stop comes after them. */
const secondsTaken = 4

/**
 * Returns where the processor time of creates goes, in a thread of ours that answers
 * requests, in our writer, and in a peer.
 */
export async function profiles({ warmUpSeconds }: { readonly warmUpSeconds: number }) {
  const peer = contestants[1] as Contestant
  const [mine, theirs] = [
    await profile(ours, warmUpSeconds),
    await profile(peer, warmUpSeconds),
  ]
  const withFile = (part: string) => (profile: CpuProfile) =>
    profile.nodes.some(({ callFrame }) => callFrame.url.includes(part))
  const columns = [
    ['HTTP thread', mine.find(withFile('http-thread.js'))],
    ['writer thread', mine.find(withFile('writer-thread.js'))],
    [peer.title, theirs.find(withFile('peers/fastify.ts'))],
  ] as const
  const shares = columns.map(([, profile]) => sharesOf(profile as CpuProfile))
  const kindsOfAll = shares.flatMap(share => [...share.keys()])
  const kinds = [...new Set(kindsOfAll)].sort()
  const rows = kinds.map(kind => [
    kind,
    ...shares.map(share => formatPercent(share.get(kind) ?? 0)),
  ])
  const words =
    "Where the time of creates goes, with 64 connections, by V8's profiler.\nWaiting for requests is left out. SQLite's time includes the fsync."
  const titles = ['', ...columns.map(([title]) => title)]
  return {
    title: 'Profiles',
    text: `${words}\n\n${table(titles, rows)}`,
  }
}

const formatPercent = (share: number) => `${(share * 100).toFixed(0)} %`

async function profile(
  contestant: Contestant,
  warmUpSeconds: number,
): Promise<CpuProfile[]> {
  using folder = temporaryFolder()
  const NODE_OPTIONS = `--cpu-prof --cpu-prof-dir=${folder.path}`
  const environment = { ...contestant.environment, NODE_OPTIONS }
  await using running = await start({ ...contestant, environment })
  await measure(running, create64, warmUpSeconds)
  await measure(running, create64, secondsTaken + 2)
  await running.server.end()
  return readdirSync(folder.path).map(name =>
    JSON.parse(readFileSync(join(folder.path, name), 'utf8')),
  )
}

/** Returns the share of each kind of work in the last seconds. */
function sharesOf({
  nodes,
  samples,
  timeDeltas,
}: CpuProfile): ReadonlyMap<string, number> {
  const kinds = new Map<number | undefined, string | undefined>()
  for (const { id, callFrame } of nodes) {
    kinds.set(id, kindOf(callFrame))
  }
  const times = new Map<string, number>()
  let taken = 0
  const takenMax = secondsTaken * 1e6
  for (let at = samples.length - 1; at >= 0 && taken < takenMax; at--) {
    const kind = kinds.get(samples[at])
    if (kind === undefined) {
      continue
    }
    const micros = timeDeltas[at] ?? 0
    taken += micros
    times.set(kind, (times.get(kind) ?? 0) + micros)
  }
  const shares = Array.from(times, ([kind, micros]) => [kind, micros / taken] as const)
  return new Map(shares)
}

function kindOf({
  functionName,
  url,
}: CpuProfile['nodes'][number]['callFrame']): string | undefined {
  if (functionName === '(idle)' || functionName === '(root)') {
    return undefined
  }
  if (functionName === '(garbage collector)') {
    return 'garbage collection'
  }
  if (functionName === '(program)') {
    return 'Node and V8, outside functions'
  }
  if (url.startsWith('node:')) {
    return 'JavaScript of Node'
  }
  if (url !== '') {
    return 'the program, its libraries and SQLite'
  }
  return /^write/.test(functionName)
    ? 'writing to sockets'
    : 'other functions of Node in C++'
}
