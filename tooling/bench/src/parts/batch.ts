import { createReadStream, createWriteStream } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { startCommand, temporaryFolder } from '@plant-store/harness'
import { ours, type Running, type Store, start, startOnFiles, storeInFile, token } from '../contestants.ts'
import { measure } from '../load.ts'
import type { Aim, Section } from '../page.ts'
import { formatDecimal, formatInteger, median, medianRatio, table } from '../table.ts'
import type { Effort } from '../turns.ts'

const orders = {
  'ids in a row': (n: number) => BigInt(n),
  'scattered ids': (n: number) => BigInt.asIntN(64, BigInt(n) * 0x9e3779b97f4a7c15n),
}

/**
 * Measures many plants in one request, beside single creates and the command's import, and the effect on other clients.
 */
export async function batch(effort: Effort): Promise<Section> {
  const { plantsInFile, signal } = effort
  const rounds = Math.min(effort.rounds, 3)
  using folder = temporaryFolder()
  const rates = new Map<string, number[]>()
  const note = (what: string, perSecond: number) => {
    signal.throwIfAborted()
    rates.set(what, [...(rates.get(what) ?? []), perSecond])
    console.error(`${what}: ${formatInteger(perSecond)} a second`)
  }
  const timed = async (what: string, store: Store, act: () => Promise<void>) => {
    const begunMs = performance.now()
    await act()
    note(what, plantsInFile / ((performance.now() - begunMs) / 1_000))
    if ((await store.count()) !== plantsInFile) throw new Error(`${what}: plants are missing`)
  }

  const fileOf = (order: string) => join(folder.path, `${order}.ndjson`)
  for (const [order, idOf] of Object.entries(orders)) await writePlants(fileOf(order), plantsInFile, idOf)
  for (let round = 1; round <= rounds; round++) {
    await using single = await startOnFiles([[ours, 0]])
    note('single', (await measure(single.running[0] as Running, creates, 3)).perSecond)
    for (const order of Object.keys(orders)) {
      const imported = await storeInFile(folder.path)
      await timed(`import, ${order}`, imported, async () => {
        const command = startCommand(['import', fileOf(order)], { databaseUrl: imported.url })
        if ((await command.ended) !== 0) throw new Error(command.errors())
      })
      const store = await storeInFile(folder.path)
      await using running = await start(ours, store, folder.path)
      await timed(`batch, ${order}`, store, () => send(running, fileOf(order), plantsInFile))
    }
  }

  const of = (what: string) => rates.get(what) ?? []
  const besideImport = (order: string) => medianRatio(of(`batch, ${order}`), of(`import, ${order}`))
  const fairness: Record<string, Noticed> = {}
  for (const order of Object.keys(orders)) {
    fairness[order] = await whatOthersNotice(fileOf(order), plantsInFile, folder.path)
  }
  const aims = [
    aim(
      'A batch beside single creates, 64 connections',
      medianRatio(of('batch, ids in a row'), of('single')),
      { atLeast: 4 },
    ),
    ...Object.keys(orders).map(order =>
      aim(`A batch beside import, ${order}`, besideImport(order), { atLeast: 0.6 }),
    ),
    ...Object.entries(fairness).flatMap(([order, { create, read }]) => [
      aim(`p99 of a create during a batch, ${order}`, create.during / create.alone, { atMost: 5 }),
      aim(`p99 of a read during a batch, ${order}`, read.during / read.alone, { atMost: 2 }),
    ]),
  ]
  return {
    title: 'Many plants in one request',
    text: [
      'What PocketBase and PostgREST promise for many plants in a request: [batches.md](batches.md).',
      `${formatInteger(plantsInFile)} plants into an empty store, medians of ${rounds}:`,
      table(
        ['', 'a second'],
        [...rates].map(([what, values]) => [what, formatInteger(median(values))]),
      ),
      `The p99 of a single request, ${probesPerSecond} creates and reads a second, alone and while those plants arrive:`,
      table(
        ['', 'alone ms', 'during ms'],
        Object.entries(fairness).flatMap(([order, each]) =>
          (['create', 'read'] as const).map(kind => [
            `${kind}, ${order}`,
            formatDecimal(each[kind].alone),
            formatDecimal(each[kind].during),
          ]),
        ),
      ),
    ].join('\n\n'),
    aims,
  }
}

const creates = { title: 'single', request: 'create', connections: 64 } as const

const aim = (what: string, measured: number, bound: Pick<Aim, 'atLeast' | 'atMost'>): Aim => ({
  what,
  unit: 'ratio',
  measured,
  ...bound,
})

interface Noticed {
  readonly create: { readonly alone: number; readonly during: number }
  readonly read: { readonly alone: number; readonly during: number }
}

const probesPerSecond = 50
const aloneSeconds = 10

async function whatOthersNotice(file: string, plants: number, folder: string): Promise<Noticed> {
  await using running = await start(ours, await storeInFile(folder, 1_000), folder)
  const warmUp = probe(running)
  await sleep(2_000)
  await warmUp.end()
  const alone = probe(running)
  await sleep(aloneSeconds * 1_000)
  const before = await alone.end()
  const during = probe(running)
  await send(running, file, plants)
  const after = await during.end()
  return {
    create: { alone: p99(before.creates), during: p99(after.creates) },
    read: { alone: p99(before.reads), during: p99(after.reads) },
  }
}

let probes = 0

/** Creates and reads at a fixed moderate rate, on open connections. */
function probe(running: Running) {
  const agent = new Agent({ keepAlive: true })
  const creates: number[] = []
  const reads: number[] = []
  const underWay = new Set<Promise<void>>()
  const ask = (times: number[], method: string, path: string, body?: string) => {
    const asking = askOnce(running, agent, method, path, body)
      .then(ms => void times.push(ms))
      .finally(() => underWay.delete(asking))
    underWay.add(asking)
  }
  const timer = setInterval(() => {
    ask(creates, 'POST', '/plants', `{"id":${-1_000_000 - probes++},"name":"probe"}`)
    ask(reads, 'GET', '/plants?limit=1')
  }, 1_000 / probesPerSecond)
  return {
    async end() {
      clearInterval(timer)
      await Promise.all(underWay)
      agent.destroy()
      return { creates, reads }
    },
  }
}

/** Resolves to the milliseconds until the answer. */
async function askOnce(running: Running, agent: Agent, method: string, path: string, body?: string) {
  const begunMs = performance.now()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const outgoing = request(`${urlOf(running)}${path}`, { agent, method, headers })
  outgoing.end(body)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  outgoing.on('error', reject).on('response', incoming => {
    if (incoming.statusCode !== 200) reject(new Error(`${method} ${path}: ${incoming.statusCode}`))
    incoming.resume().on('end', resolve)
  })
  await promise
  return performance.now() - begunMs
}

function p99(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN
}

const urlOf = ({ servers: [server] }: Running) => server?.url as string

async function send(running: Running, file: string, plants: number): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/x-ndjson' }
  const outgoing = request(`${urlOf(running)}/plants/batch`, { method: 'POST', headers })
  const answered = new Promise<Readable>((resolve, reject) => {
    outgoing.on('response', resolve).on('error', reject)
  })
  await pipeline(createReadStream(file, { highWaterMark: 256 * 1024 }), outgoing)
  const { created } = (await json(await answered)) as { created?: number }
  if (created !== plants) throw new Error(`the batch created ${created} plants, not ${plants}`)
}

async function writePlants(file: string, count: number, idOf: (n: number) => bigint): Promise<void> {
  const lines = function* () {
    for (let n = 1; n <= count; n++)
      yield `{"id":${idOf(n)},"name":"Plant no ${n}","tag":"kind ${n % 500}"}\n`
  }
  await pipeline(Readable.from(lines()), createWriteStream(file))
}
