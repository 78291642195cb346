import { createDatabase, startPostgres } from '@plant-store/harness/postgres'
import { runAnnouncements } from './announcements.ts'
import { runBatches } from './batches.ts'
import { runDiskFaults } from './disk-faults.ts'
import { runFailover } from './failover.ts'
import { runFuzz } from './fuzz.ts'
import { runKills } from './kill.ts'
import { runModels } from './model.ts'
import { overloadPart } from './overload/overload.ts'
import type { Circumstances, Finding, Part } from './part.ts'
import { cutCopies, cutFailedCopies, cutServer } from './power-cut.ts'

/** What `pnpm prove` does, in this order. Parts of fixed length come first. The others share the remaining time. */
export const parts: readonly Part[] = [
  { name: 'fuzz', share: 0.07, run: runFuzz },
  overloadPart,
  { name: 'disk-faults', share: 0.08, run: runDiskFaults },
  { name: 'power-cut', share: 0.06, run: cutServer },
  { name: 'failed-copies', share: 0.06, run: cutFailedCopies },
  { name: 'power-cut-copies', share: 0.05, run: cutCopies },
  { name: 'model', share: 0.06, run: runModels },
  { name: 'postgres', share: 0.1, run: runOnPostgres },
  { name: 'failover', share: 0.1, run: runFailover },
  { name: 'batches', share: 0.08, run: runBatches },
  { name: 'announcements', share: 0.2, run: runAnnouncements },
  { name: 'kill', share: 0.36, run: runKills },
]

/** The model, and kills of the program. The failover kills the database. */
async function runOnPostgres(circumstances: Circumstances): Promise<Finding> {
  await using server = await startPostgres()
  const half = { ...circumstances, endAtMs: (performance.now() + circumstances.endAtMs) / 2 }
  const model = await runModels(half, server.url)
  await using database = await createDatabase(server.url)
  const kills = await runKills({ ...circumstances, scale: circumstances.scale / 5 }, database.url)
  return {
    ...kills,
    tried: `${model.tried}; ${kills.tried}`,
    times: model.times + kills.times,
    failures: [...model.failures, ...kills.failures],
  }
}
