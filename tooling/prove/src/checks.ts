import { join } from 'node:path'
import type { Client } from '@plant-store/contract'
import { temporaryFolder } from '@plant-store/harness'
import { createDatabase, startPostgres } from '@plant-store/harness/postgres'
import { fuzz } from './fuzz.ts'
import { runHttpCases } from './http-cases.ts'
import { runJsonSuite, type SuiteFinding } from './json-suite.ts'
import { runKills } from './kill.ts'
import { type ModelFinding, runRacingModel, runSequentialModel } from './model.ts'
import { runNaughtyStrings } from './naughty.ts'
import { operationsOver } from './operations.ts'
import { type Circumstances, type Finding, figure, type Part } from './part.ts'
import { connectClient, defects, startProgram } from './program.ts'

/** Parts that need no more than a running program on a store of its own. */

export const modelPart: Part = {
  name: 'model',
  share: 0.06,
  run: circumstances => withProgram(circumstances, client => runModels(circumstances, client)),
}

/** The same promises on the other store: the model, and kills of the program (its drills kill the server itself). */
export const postgresPart: Part = {
  name: 'postgres',
  share: 0.1,
  async run(circumstances) {
    await using server = await startPostgres()
    const half = { ...circumstances, endAtMs: (performance.now() + circumstances.endAtMs) / 2 }
    const model = await withProgram(half, client => runModels(half, client), server.url)
    await using database = await createDatabase(server.url)
    const kills = await runKills(circumstances, 20, database.url)
    return {
      tried: `${model.tried}; ${kills.tried}`,
      times: model.times + kills.times,
      failures: [...model.failures, ...kills.failures],
      lost: kills.lost ?? 0,
    }
  },
}

async function runModels({ seed, scale, endAtMs }: Circumstances, client: Client): Promise<Finding> {
  const operations = operationsOver(client)
  const [sequences, races] = [Math.ceil(1_000 * scale), Math.ceil(3_000 * scale)]
  const sequential = await runSequentialModel(operations, {
    seed,
    runs: sequences,
    // Half of the time for each.
    endAtMs: (performance.now() + endAtMs) / 2,
  })
  const racing = await runRacingModel(operations, {
    seed,
    runs: races,
    firstId: 10n ** 12n,
    endAtMs,
  })
  const failures = [sequential, racing].flatMap(({ failure }: ModelFinding) => failure ?? [])
  return {
    tried: `${figure(sequential.runs)} of ${figure(sequences)} sequences against a Map and ${figure(racing.runs)} of ${figure(races)} races; ${figure(sequential.operations + racing.operations)} operations`,
    times: sequential.runs + racing.runs,
    failures,
    lost: 0,
  }
}

export const fuzzPart: Part = {
  name: 'fuzz',
  share: 0.07,
  run: circumstances =>
    withProgram(circumstances, async (client, description) => {
      const { seed, scale, endAtMs } = circumstances
      const { requests, failures } = await fuzz(client, description, {
        seed,
        runs: Math.ceil(2_000 * scale),
        endAtMs,
      })
      return { tried: `${figure(requests)} requests made from the description`, times: requests, failures }
    }),
}

export const jsonPart = suitePart('json', runJsonSuite, 'cases of JSONTestSuite')
export const naughtyPart = suitePart('naughty', runNaughtyStrings, 'naughty strings')
export const httpPart = suitePart('http', runHttpCases, 'requests that are no good HTTP')

function suitePart(
  name: string,
  run: (client: Client, firstId: bigint) => Promise<SuiteFinding>,
  what: string,
): Part {
  return {
    name,
    share: 0.02,
    run: circumstances =>
      withProgram(circumstances, async client => {
        const { cases, requests, failures } = await run(client, 10n ** 9n)
        return { tried: `${figure(cases)} ${what}, ${figure(requests)} requests`, times: cases, failures }
      }),
  }
}

/** Whatever is asked of it, the program must find no defect of its own, and must still be there. */
async function withProgram(
  { preload }: Circumstances,
  run: (client: Client, description: string) => Promise<Finding>,
  databaseUrl?: string,
): Promise<Finding> {
  using folder = temporaryFolder()
  await using program = await startProgram({
    databaseUrl: databaseUrl ?? `file:${join(folder.path, 'plants.db')}`,
    preload,
  })
  const description = await (await fetch(`${program.url}/openapi.json`)).text()
  const client = await connectClient(program, description)
  try {
    const finding = await run(client, description)
    const failures = [...finding.failures]
    if (!program.isRunning()) failures.push('the program ended')
    failures.push(...defects(program))
    return { ...finding, failures }
  } finally {
    client.close()
  }
}
