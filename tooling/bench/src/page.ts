import { availableParallelism, totalmem } from 'node:os'
import { bun } from '@plant-store/harness/npm-program'
import Database from 'better-sqlite3'

export const effort = {
  /** How often each is measured, an odd number. */
  rounds: 5,
  /** V8 compiles for some 15 seconds under load. */
  warmUpSeconds: 15,
  plantsInFile: 1_000_000,
}
export type Effort = typeof effort

/** How the page begins: how its figures were measured. */
export const introduction = `# Benchmark

The load comes from wrk on the same machine and takes processor time from the servers. All stay
up. Each is warmed for ${effort.warmUpSeconds} seconds, as V8 compiles for that long, and then they are measured in
turns, one second each. A figure is the median of ${effort.rounds} rounds, and a ratio is that of two figures.
Machines differ more than programs: compare ratios, and run \`pnpm bench\` on yours.

A **durable** answer is sent once the plant is on disk (\`synchronous = FULL\`). One that is **not
durable** (\`NORMAL\`) can be lost in a power cut. The other servers do less: they check no token,
write no log, have no index of tags, and take ids up to 2^53 only.`

/** Returns what the figures were measured on. */
export function describeMachine(): string {
  const memory = Math.round(totalmem() / 2 ** 30)
  const sqlite = new Database(':memory:').prepare('select sqlite_version()').pluck().get()
  return `${availableParallelism()} cores and ${memory} GiB of memory (${process.platform}, ${process.arch}), Node ${process.versions.node}, SQLite ${sqlite}, Bun ${bun.version}. Every answer
was a 200, and afterwards every store contained all plants that it had answered for.`
}
