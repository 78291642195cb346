import { trace } from '@plant-store/harness'
import { ours, type Running, startOnFiles } from '../contestants.ts'
import { measure } from '../load.ts'
import type { Section } from '../page.ts'
import { formatDecimal, formatInteger, table } from '../table.ts'

/**
 * Counts the fsyncs of creates with strace.
 *
 * @throws Error if a single client got an answer without an fsync of its own
 */
export async function fsyncs(): Promise<Section> {
  await using started = await startOnFiles([[ours, 0]])
  const [running] = started.running as [Running]
  const count = async (connections: number) => {
    const tracer = await trace(running.servers[0]?.pid as number)
    if (tracer === undefined) throw new Error('strace may not attach to the server')
    const { requests } = await measure(running, { title: 'fsyncs', request: 'create', connections }, 1)
    // An interrupted call has a second line, which says "resumed" and names no file.
    const calls = (await tracer.detach()).filter(call => / (fsync|fdatasync)\(\d+<[^>]*\.db/.test(call))
    return { connections, requests, fsyncs: calls.length, each: requests / calls.length }
  }
  const alone = await count(1)
  const shared = await count(64)
  if (alone.fsyncs < alone.requests)
    throw new Error(`${alone.requests} creates were answered one after another, with ${alone.fsyncs} fsyncs`)
  return {
    title: 'Fsyncs',
    text: [
      'Counted with strace, which slows the server down. Each create of a single client has its own fsync. Many clients share theirs:',
      table(
        ['connections', 'creates', 'fsyncs', 'creates per fsync'],
        [alone, shared].map(({ connections, requests, fsyncs, each }) => [
          `${connections}`,
          formatInteger(requests),
          formatInteger(fsyncs),
          formatDecimal(each),
        ]),
      ),
    ].join('\n\n'),
    aims: [{ what: 'Creates per fsync, 64 connections', unit: 'creates', measured: shared.each, atLeast: 8 }],
  }
}
