import { globSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder, until } from '@plant-store/harness'
import { type Circumstances, type Finding, type Part, timeIsUp } from './part.ts'
import { startProgram } from './program.ts'

export const clockPart: Part = { name: 'clock', share: 0.03, run: runClock }

/** The errors of the clock in seconds, one after another. */
const jumps = [0, 86_400, -86_400, 10 * 365 * 86_400, -10 * 365 * 86_400, 3_600, 0]

/** Sets the program's clock forward and back while it works. No promise may depend on the time of day. */
export async function runClock(circumstances: Circumstances): Promise<Finding> {
  const [library] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')
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
    environment: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: clock,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  })
  const { operations, url } = program
  let times = 0
  for (const jump of jumps) {
    if (timeIsUp(circumstances)) break
    writeFileSync(clock, `${jump < 0 ? '-' : '+'}${Math.abs(jump)}s\n`)
    const hasJumped = async () => {
      const date = Date.parse((await fetch(`${url}/healthz`)).headers.get('date') ?? '')
      return Math.abs(date - Date.now() - jump * 1_000) <= 5_000
    }
    // Date has whole seconds, and Node keeps the last one for up to a second.
    await until(`a jump of ${jump} s`, hasJumped, 5_000).catch(error => failures.push(error.message))
    times++
    const ids = Array.from({ length: 50 }, (_, n) => BigInt(times * 1_000 + n))
    const created = await Promise.all(ids.map(id => operations.create(id, { name: `${jump}` })))
    const read = await Promise.all(ids.map(id => operations.read(id)))
    if ([...created, ...read].some(({ is }) => is !== 'done'))
      failures.push(`after a jump of ${jump} s not all is done`)
    const ready = await fetch(`${url}/readyz`)
    if (ready.status !== 200) failures.push(`after a jump of ${jump} s it is not ready`)
  }
  const ended = await program.end('SIGTERM')
  if (ended !== 0) failures.push(`it ended with ${ended}`)
  return { tried: `${times} jumps of up to ten years, forward and back`, times, failures }
}
