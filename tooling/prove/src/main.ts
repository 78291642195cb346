import { parseArgs } from 'node:util'
import { anySeed } from '@plant-store/harness/random'
import { breaks, preloadOf } from '../breaks/breaks.ts'
import { type Finding, figure } from './part.ts'
import { parts } from './parts.ts'

/** For parts in progress when the time is up. Beyond it they are stopped and have failed. */
const graceMinutes = 3

const usage = `Proves what the plant store promises, and ends with 1 when any of it fails.

  --only PART      one of ${parts.map(({ name }) => name).join(', ')}; may be given more than once
  --minutes N      for everything together, 15 unless given; less of everything is tried in less
  --seed N         what random choices follow from
  --break NAME     breaks the program on purpose; ends with 1 when that is noticed, and with 2 when it is not:
${Object.entries(breaks)
  .map(([name, { does }]) => `                   ${name}: ${does}\n`)
  .join('')}`

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    minutes: { type: 'string', default: '15' },
    seed: { type: 'string', default: `${anySeed()}` },
    break: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
})

const minutes = Number(values.minutes)
const seed = Number(values.seed)
const broken = values.break
const wanted = values.only ?? (broken === undefined ? undefined : [breaks[broken]?.part ?? ''])
const isKnown =
  (wanted ?? []).every(name => parts.some(part => part.name === name)) &&
  (broken === undefined || broken in breaks)
if (values.help) process.stdout.write(usage)
else if (!isKnown || !(minutes > 0) || !Number.isSafeInteger(seed)) {
  process.stderr.write(usage)
  process.exitCode = 2
} else process.exitCode = await prove()

/** @returns the exit code */
async function prove(): Promise<number> {
  const chosen = parts.filter(({ name }) => wanted?.includes(name) ?? true)
  const preload = broken && preloadOf(broken)
  const endAtMs = performance.now() + minutes * 60_000
  const rows: Row[] = []
  for (const [index, part] of chosen.entries()) {
    const beganAt = performance.now()
    const sharesLeft = chosen.slice(index).reduce((sum, { share }) => sum + share, 0)
    const boundMs = Math.max(0, ((endAtMs - beganAt) * part.share) / sharesLeft)
    console.log(`${part.name} … (seed ${seed}, at most about ${Math.ceil(boundMs / 1_000)} s)`)
    const cut = setTimeout(
      () => {
        const tried = 'did not end'
        report([...rows, { name: part.name, seconds: 0, tried, times: 0, failures: [tried] }])
        process.exit(1)
      },
      endAtMs + graceMinutes * 60_000 - beganAt,
    )
    const circumstances = { seed, endAtMs: beganAt + boundMs, preload, scale: Math.min(1, minutes / 15) }
    const finding: Finding = await part
      .run(circumstances)
      .catch(error => ({ tried: 'ended early', times: 0, failures: [error.stack ?? `${error}`] }))
    clearTimeout(cut)
    for (const failure of finding.failures.slice(0, 20)) console.log(`  FAILED ${failure}`)
    for (const skipped of finding.skipped ?? []) console.log(`  SKIPPED ${skipped}`)
    rows.push({ name: part.name, seconds: (performance.now() - beganAt) / 1_000, ...finding })
  }
  const isSound = report(rows)
  if (broken === undefined) return isSound ? 0 : 1
  const isNoticed = rows.some(row => row.failures.some(failure => breaks[broken]?.noticed.test(failure)))
  console.log(`broken on purpose, ${broken}: ${isNoticed ? 'noticed' : 'NOT NOTICED'}`)
  return isNoticed ? 1 : 2
}

interface Row extends Finding {
  readonly name: string
  readonly seconds: number
}

/** @returns whether nothing failed */
function report(rows: readonly Row[]): boolean {
  const cells = rows.map(({ name, times, failures, lost, seconds, tried }) => [
    name,
    {
      times,
      failures: failures.length,
      ...(lost !== undefined && { lost }),
      seconds: Math.round(seconds),
      tried,
    },
  ])
  console.table(Object.fromEntries(cells))
  const failures = rows.reduce((sum, row) => sum + row.failures.length, 0)
  const lost = rows.reduce((sum, row) => sum + (row.lost ?? 0), 0)
  console.log(`seed ${seed}: ${figure(failures)} failures, ${figure(lost)} answered writes lost`)
  for (const each of rows.flatMap(row => row.skipped ?? [])) console.log(`NOT TRIED: ${each}`)
  return failures === 0
}
