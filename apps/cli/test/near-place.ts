import type { Result } from '@plant-store/harness'
import { vi } from 'vitest'
import { run } from '../src/run.ts'
import { Place } from './place.ts'

/** A place whose commands run in this process, which is quicker. Those with an input have a process of their own. */
export class NearPlace extends Place {
  override async run(args: readonly string[], input?: string | Buffer): Promise<Result> {
    if (input !== undefined) return super.run(args, input)
    const folderBefore = process.cwd()
    process.chdir(this.folder)
    const before = signals.flatMap(name => process.listeners(name))
    const [stdout, stderr] = [process.stdout, process.stderr].map(keepOutput)
    vi.stubEnv('DATABASE_URL', this.url)
    const code = await run(args).finally(() => {
      vi.unstubAllEnvs()
      process.chdir(folderBefore)
      for (const name of signals)
        for (const listener of process.listeners(name))
          if (!before.includes(listener)) process.off(name, listener)
    })
    return { code, stdout: stdout?.() ?? '', stderr: stderr?.() ?? '' }
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Keeps what is written. Returns a function that ends that and returns it. */
function keepOutput(stream: NodeJS.WriteStream): () => string {
  let text = ''
  const spy = vi.spyOn(stream, 'write').mockImplementation(chunk => {
    text += chunk
    return true
  })
  return () => {
    spy.mockRestore()
    return text
  }
}
