import { parseArgs } from 'node:util'
import { anySeed } from '@plant-store/harness/random'
import { breaks, preloadOf } from '../breaks/breaks.ts'
import type { Finding } from './part.ts'
import { parts } from './parts.ts'

const usage = `Proves what the plant store promises, and ends with 1 when any of it fails.

  --only PART      one of ${Object.keys(parts).join(', ')}
  --scale N        tries this share of everything, 1 unless given
  --seed N         what random choices follow from
  --break NAME     breaks the program on purpose; ends with 1 when that is noticed, and with 2 when it is not:
${Object.entries(breaks)
  .map(([name, { does }]) => `                   ${name}: ${does}\n`)
  .join('')}`

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    scale: { type: 'string', default: '1' },
    seed: { type: 'string', default: `${anySeed()}` },
    break: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
})

const [scale, seed] = [Number(values.scale), Number(values.seed)]
const broken = values.break === undefined ? undefined : breaks[values.break]
const only = values.only ?? broken?.part
const isKnown =
  (broken === undefined) === (values.break === undefined) && (only ?? 'kill') in parts
if (values.help) {
  process.stdout.write(usage)
} else if (!isKnown || !(scale > 0) || !Number.isSafeInteger(seed)) {
  process.stderr.write(usage)
  process.exitCode = 2
} else {
  process.exitCode = await prove()
}

/** @returns the exit code */
async function prove(): Promise<number> {
  const preload = values.break && preloadOf(values.break)
  const failures: string[] = []
  console.log(`seed ${seed}`)
  for (const [name, run] of Object.entries(parts)) {
    if (name !== (only ?? name)) {
      continue
    }
    const beganAt = performance.now()
    const finding = await run({ seed, preload, scale }).catch(
      (error): Finding => ({
        tried: 'ended early',
        times: 0,
        failures: [error.stack ?? `${error}`],
      }),
    )
    console.log(
      `${name}, ${Math.round((performance.now() - beganAt) / 1_000)} s: ${finding.tried}`,
    )
    for (const failure of finding.failures.slice(0, 20)) {
      console.log(`  FAILED ${failure}`)
    }
    for (const skipped of finding.skipped ?? []) {
      console.log(`  NOT TRIED ${skipped}`)
    }
    failures.push(...finding.failures)
  }
  console.log(`${failures.length} failures`)
  if (broken === undefined) {
    return failures.length === 0 ? 0 : 1
  }
  const isNoticed = failures.some(failure => broken.noticed.test(failure))
  console.log(
    `broken on purpose, ${values.break}: ${isNoticed ? 'noticed' : 'NOT NOTICED'}`,
  )
  return isNoticed ? 1 : 2
}
