import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import { type Contestant, contestants, ours, start } from './contestants.ts'
import { type Load, measure } from './load.ts'
import { formatInteger, formatRatio, table } from './table.ts'

/** A heap profile of V8: the sampled bytes by the stack that allocated them. */
interface HeapProfile {
  readonly callFrame: {
    readonly functionName: string
    readonly url: string
    readonly lineNumber: number
  }
  readonly selfSize: number
  readonly children: readonly HeapProfile[]
}

/** The bytes that a thread allocates for a request, by function. */
type Bytes = ReadonlyMap<string, number>

type MeasuredRequest = readonly [title: string, Load['request'], plants: number]

const requests: readonly MeasuredRequest[] = [
  ['a create', 'create', 0],
  ['a read by id', '/plants/%s', 100_000],
  ['a page of 100', '/plants?limit=100&after=%s', 100_000],
]
const sampledSeconds = 4
const largestMax = 10

/**
 * Returns what the thread that answers allocates for a request, and the functions that
 * allocate most of it.
 */
export async function allocations({ warmUpSeconds }: { readonly warmUpSeconds: number }) {
  const oneThread = { ...ours, environment: { ...ours.environment, HTTP_THREADS: '1' } }
  // Durable or not, it allocates the same, and so it answers more.
  const peer = contestants[3] as Contestant
  const rows: string[][] = []
  const lists: string[] = []
  for (const [title, request, plants] of requests) {
    const sampled = { load: { request, connections: 64 }, plants, warmUpSeconds }
    const mine = await bytesOf(oneThread, sampled)
    const theirs = await bytesOf(peer, sampled)
    const [total, others] = [sum(mine), sum(theirs)]
    rows.push([
      title,
      formatInteger(total),
      formatInteger(others),
      formatRatio(total / others),
    ])
    lists.push(`Of ${title}:\n${largest(mine)}`, `Of Fastify's:\n${largest(theirs)}`)
    console.error(`${title}: ${formatInteger(total)} bytes`)
  }
  const words =
    "Bytes that the thread that answers allocates for a request, with 64 connections, by V8's sampling\nheap profiler. What was collected meanwhile is included. Garbage collection\nfollows them, and they vary by 2 %."
  const columns = ['', 'ours', peer.title, 'ours / theirs']
  const paragraphs = [words, table(columns, rows), ...lists]
  return { title: 'Allocations', text: paragraphs.join('\n\n') }
}

interface Sampled {
  readonly load: Load
  readonly plants: number
  readonly warmUpSeconds: number
}

/**
 * Returns what the thread that allocates most, which is the one that answers, allocates
 * for a request.
 */
export async function bytesOf(
  contestant: Contestant,
  { load, plants, warmUpSeconds }: Sampled,
): Promise<Bytes> {
  using folder = temporaryFolder()
  const NODE_OPTIONS = `--import ${join(import.meta.dirname, 'sample-heap.ts')}`
  const environment = {
    ...contestant.environment,
    NODE_OPTIONS,
    HEAP_PROFILES: folder.path,
  }
  await using running = await start({ ...contestant, environment }, plants)
  await measure(running, load, warmUpSeconds)
  running.server.process.kill('SIGUSR2')
  const { requests } = await measure(running, load, sampledSeconds)
  await running.server.end()
  const threads = readdirSync(folder.path).map(name => {
    const profile = readFileSync(join(folder.path, name), 'utf8')
    const { head } = JSON.parse(profile) as { head: HeapProfile }
    return byFunction(head, requests)
  })
  threads.sort((a, b) => sum(b) - sum(a))
  return threads[0] ?? new Map()
}

function byFunction(head: HeapProfile, requests: number): Bytes {
  const bytes = new Map<string, number>()
  const nodes = [head]
  for (const { callFrame, selfSize, children } of nodes) {
    const { functionName, url, lineNumber } = callFrame
    const name = `\`${functionName || 'anonymous'} (${basename(url) || 'V8'}:${lineNumber + 1})\``
    bytes.set(name, (bytes.get(name) ?? 0) + selfSize / requests)
    nodes.push(...children)
  }
  return bytes
}

function sum(bytes: Bytes): number {
  let total = 0
  for (const count of bytes.values()) {
    total += count
  }
  return total
}

function largest(bytes: Bytes): string {
  const byCount = [...bytes].sort(([, a], [, b]) => b - a)
  return byCount
    .slice(0, largestMax)
    .map(([name, count]) => `\n- ${name}: ${formatInteger(count)}`)
    .join('')
}
