import type { ServerOptions } from '@plant-store/harness'
import { createDatabase, startPostgres } from '@plant-store/harness/postgres'
import { fuzz } from './fuzz.ts'
import { runKills } from './kill.ts'
import { runRacingModel, runSequentialModel } from './model.ts'
import { type Circumstances, type Finding, figure, type Part } from './part.ts'
import { startProgram, type TestedProgram } from './program.ts'

/** Parts that need only a running program on a store of its own. */

export const modelPart: Part = {
  name: 'model',
  share: 0.06,
  run: circumstances =>
    withProgram({ preload: circumstances.preload }, program => runModels(circumstances, program)),
}

/** The same promises on PostgreSQL: the model, and kills of the program. Its drills kill the server itself. */
export const postgresPart: Part = {
  name: 'postgres',
  share: 0.1,
  async run(circumstances) {
    await using server = await startPostgres()
    const half = { ...circumstances, endAtMs: (performance.now() + circumstances.endAtMs) / 2 }
    const { preload } = circumstances
    const model = await withProgram({ preload, databaseUrl: server.url }, program => runModels(half, program))
    await using database = await createDatabase(server.url)
    const kills = await runKills(circumstances, 20, database.url)
    return {
      ...kills,
      tried: `${model.tried}; ${kills.tried}`,
      times: model.times + kills.times,
      failures: [...model.failures, ...kills.failures],
    }
  },
}

async function runModels(
  { seed, scale, endAtMs }: Circumstances,
  { operations }: TestedProgram,
): Promise<Finding> {
  const [sequences, races] = [Math.ceil(1_000 * scale), Math.ceil(3_000 * scale)]
  const halfTime = (performance.now() + endAtMs) / 2
  const sequential = await runSequentialModel(operations, { seed, runs: sequences, endAtMs: halfTime })
  const racing = await runRacingModel(operations, { seed, runs: races, firstId: 10n ** 12n, endAtMs })
  return {
    tried: `${figure(sequential.runs)} of ${figure(sequences)} sequences against a Map and ${figure(racing.runs)} of ${figure(races)} races; ${figure(sequential.operations + racing.operations)} operations`,
    times: sequential.runs + racing.runs,
    failures: [sequential, racing].flatMap(({ failure }) => failure ?? []),
    lost: 0,
  }
}

export const fuzzPart: Part = {
  name: 'fuzz',
  share: 0.07,
  run: ({ seed, scale, endAtMs, preload }) =>
    withProgram({ preload }, async program => {
      const { requests, failures } = await fuzz(program, { seed, runs: Math.ceil(2_000 * scale), endAtMs })
      return { tried: `${figure(requests)} requests made from the description`, times: requests, failures }
    }),
}

/** Fails if the program reported a defect or has ended. */
async function withProgram(
  options: ServerOptions,
  run: (program: TestedProgram) => Promise<Finding>,
): Promise<Finding> {
  await using program = await startProgram(options)
  const finding = await run(program)
  const failures = [...finding.failures, ...program.defects()]
  if (!program.isRunning()) failures.push('the program ended')
  return { ...finding, failures }
}
