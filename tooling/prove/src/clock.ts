import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import { operationsOver } from './operations.ts'
import { type Circumstances, type Finding, type Part, timeIsUp } from './part.ts'
import { connectClient, startProgram } from './program.ts'

export const clockPart: Part = { name: 'clock', share: 0.03, run: runClock }

/** By how much the clock is off, one after the other, in seconds. */
const jumps = [0, 86_400, -86_400, 10 * 365 * 86_400, -10 * 365 * 86_400, 3_600, 0]

/** Sets the clock of the program forward and back while it works: nothing that it promises hangs on the time of day. */
export async function runClock(circumstances: Circumstances): Promise<Finding> {
  const library = findLibrary()
  if (library === undefined)
    return {
      tried: 'nothing',
      times: 0,
      failures: [],
      skipped: ['a clock that jumps: faketime is not installed'],
    }
  const failures: string[] = []
  using folder = temporaryFolder()
  const clock = join(folder.path, 'clock')
  writeFileSync(clock, '+0s\n')
  await using program = await startProgram({
    databaseUrl: `file:${join(folder.path, 'plants.db')}`,
    environment: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: clock,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  })
  const client = await connectClient(program)
  const operations = operationsOver(client)
  let times = 0
  for (const jump of jumps) {
    if (timeIsUp(circumstances)) break
    writeFileSync(clock, `${jump < 0 ? '-' : '+'}${Math.abs(jump)}s\n`)
    const answer = await fetch(`${program.url}/healthz`)
    // Date has whole seconds, and Node keeps the last one for up to a second.
    const giveUpAt = performance.now() + 5_000
    let told = Date.parse(answer.headers.get('date') ?? '')
    while (Math.abs(told - Date.now() - jump * 1_000) > 5_000 && performance.now() < giveUpAt)
      told = Date.parse((await fetch(`${program.url}/healthz`)).headers.get('date') ?? '')
    if (Math.abs(told - Date.now() - jump * 1_000) > 5_000)
      failures.push(`the clock did not jump by ${jump} s`)
    times++
    const ids = Array.from({ length: 50 }, (_, n) => BigInt(times * 1_000 + n))
    const created = await Promise.all(ids.map(id => operations.create(id, { name: `${jump}` })))
    const read = await Promise.all(ids.map(id => operations.read(id)))
    if ([...created, ...read].some(({ is }) => is !== 'done'))
      failures.push(`after a jump of ${jump} s not all is done`)
    const ready = await fetch(`${program.url}/readyz`)
    if (ready.status !== 200) failures.push(`after a jump of ${jump} s it is not ready`)
  }
  client.close()
  const ended = await program.end('SIGTERM')
  if (ended !== 0) failures.push(`it ended with ${ended}`)
  return { tried: `${times} jumps of up to ten years, forward and back`, times, failures }
}

function findLibrary(): string | undefined {
  if (!existsSync('/usr/lib')) return undefined
  for (const folder of readdirSync('/usr/lib')) {
    const path = `/usr/lib/${folder}/faketime/libfaketimeMT.so.1`
    if (existsSync(path)) return path
  }
  return undefined
}
