import { createDatabase, startPostgres } from '@plant-store/harness/postgres'
import { runDiskFaults } from './disk-faults.ts'
import { runFailover } from './failover.ts'
import { runFuzz } from './fuzz/fuzz.ts'
import { runKills } from './kill.ts'
import { runModels } from './model.ts'
import { runOverload } from './overload/overload.ts'
import type { Circumstances, Finding, Part } from './part.ts'
import { cutCopies, cutFailedCopies, cutServer } from './power-cut.ts'

/** The parts of `pnpm prove`, in their order. */
export const parts: Readonly<Record<string, Part>> = {
  fuzz: runFuzz,
  overload: runOverload,
  'disk-faults': runDiskFaults,
  'power-cut': cutServer,
  'failed-copies': cutFailedCopies,
  'power-cut-copies': cutCopies,
  model: runModels,
  postgres: runOnPostgres,
  failover: runFailover,
  kill: runKills,
}

/** The model, and kills of the program. The failover kills the database. */
async function runOnPostgres(circumstances: Circumstances): Promise<Finding> {
  await using server = await startPostgres()
  const model = await runModels(circumstances, server.url)
  await using database = await createDatabase(server.url)
  const kills = await runKills(
    { ...circumstances, scale: circumstances.scale / 5 },
    database.url,
  )
  return {
    tried: `${model.tried}; ${kills.tried}`,
    times: model.times + kills.times,
    failures: [...model.failures, ...kills.failures],
  }
}
