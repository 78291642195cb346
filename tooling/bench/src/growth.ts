import { statfsSync } from 'node:fs'
import { temporaryFolder } from '@plant-store/harness'
import { type Load, type Measured, measure } from './load.ts'
import { describeMachine } from './machine.ts'
import { rarePlants } from './population.ts'
import { formatInteger, formatMs, formatRatio, table } from './report.ts'
import { median, medianRatio } from './statistics.ts'
import { ours, type RunningTarget, startTarget, tryOut } from './targets.ts'

export interface GrowthOptions {
  readonly plants: number
  readonly rounds: number
  readonly seconds: number
  readonly seed: number
}

/** What a new store holds, so that there is something to read in it. */
const newStorePlants = 1_000

const bytesPerPlant = 100
/** For what is created and logged while measuring. */
const spareBytes = 2 ** 30

const loads: readonly (Omit<Load, 'seconds'> & { readonly title: string; readonly plantsOnPage?: number })[] =
  [
    { title: 'create', scenario: 'creates', connections: 64 },
    { title: 'read by id', scenario: 'reads', connections: 64 },
    { title: 'first page', scenario: '/plants?limit=100', connections: 1, plantsOnPage: 100 },
    { title: 'a page from anywhere', scenario: 'lists', connections: 1 },
    {
      title: 'page by a rare tag',
      scenario: '/plants?limit=100&tag=rare',
      connections: 1,
      plantsOnPage: rarePlants,
    },
    {
      title: 'page by a common tag',
      scenario: '/plants?limit=100&tag=common',
      connections: 1,
      plantsOnPage: 100,
    },
  ]
const firstPage = 2

/** Measures a big store beside a new one, in turns, and prints a table. */
export async function growth(
  { plants, rounds, seconds, seed }: GrowthOptions,
  signal: AbortSignal,
): Promise<void> {
  using temporary = temporaryFolder()
  const folder = temporary.path
  const { bavail, bsize } = statfsSync(folder)
  const needed = plants * bytesPerPlant + spareBytes
  if (bavail * bsize < needed) {
    throw new Error(`temporary files need ${formatInteger(needed / 2 ** 20)} MiB of disk`)
  }
  console.log(`${describeMachine()}; load from wrk, seed ${seed}`)

  await using stack = new AsyncDisposableStack()
  const population = { seed, idBits: 63 } as const
  const stores: RunningTarget[] = []
  for (const count of [newStorePlants, plants]) {
    const startedAt = Date.now()
    stores.push(stack.use(await startTarget(ours, { folder, population, plants: count })))
    console.log(
      `a store of ${formatInteger(count)} plants, made in ${Math.round((Date.now() - startedAt) / 1000)} s`,
    )
    signal.throwIfAborted()
  }
  for (const store of stores) {
    await tryOut(store)
    for (const load of loads) {
      if (load.plantsOnPage !== undefined) await checkPage(store, load.scenario, load.plantsOnPage)
      await measure(store, { ...load, seconds: 1 })
      signal.throwIfAborted()
    }
  }

  const measured = loads.map(() => stores.map((): Measured[] => []))
  for (let round = 1; round <= rounds; round++) {
    for (const [row, load] of loads.entries()) {
      for (const [column, store] of stores.entries()) {
        signal.throwIfAborted()
        const result = await measure(store, { ...load, seconds })
        measured[row]?.[column]?.push(result)
        console.log(
          `round ${round}: ${load.title} of ${formatInteger(store.readable)}: ` +
            `${formatInteger(result.perSecond)}/s, p50 ${formatMs(result.p50Ms)} ms`,
        )
      }
    }
  }
  console.log(`\n${growthTable(measured, plants)}`)
}

/** @param measured by load, by store (the new one, the big one), by round */
export function growthTable(measured: readonly (readonly (readonly Measured[])[])[], plants: number): string {
  const rates = (row: number, column: number) => (measured[row]?.[column] ?? []).map(each => each.perSecond)
  const times = (row: number) => (measured[row]?.[1] ?? []).map(each => each.p50Ms)
  return table(
    [
      '',
      'new store, /s',
      `${formatInteger(plants)} plants, /s`,
      'big / new',
      'p50 ms',
      'time / first page’s',
    ],
    loads.map(({ title, connections }, row) => [
      `${title} (${connections} ${connections === 1 ? 'connection' : 'connections'})`,
      formatInteger(median(rates(row, 0))),
      formatInteger(median(rates(row, 1))),
      formatRatio(medianRatio(rates(row, 1), rates(row, 0))),
      formatMs(median(times(row))),
      row < firstPage ? '' : formatRatio(medianRatio(times(row), times(firstPage))),
    ]),
  )
}

/** A quick page is no good when it is not the page that was asked for. */
async function checkPage({ process, token }: RunningTarget, path: string, plants: number): Promise<void> {
  const answer = await fetch(process.url + path, { headers: { authorization: `Bearer ${token}` } })
  const page = (await answer.json()) as unknown[]
  if (page.length !== plants) throw new Error(`${path} has ${page.length} plants and not ${plants}`)
}
