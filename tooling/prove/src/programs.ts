import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Command } from '@plant-store/harness'
import { applyPatch, copySources } from '@plant-store/harness/sources'

/** The commands that start our programs. */
export interface Programs {
  readonly server: Command
  readonly commandLine: Command
}

const run = promisify(execFile)

/**
 * Copies the sources, applies patches of `breaks`, and builds the programs in a folder
 * that is removed when they are disposed of.
 */
export async function buildPatched(
  ...names: readonly string[]
): Promise<Programs & Disposable> {
  using starting = new DisposableStack()
  const copy = starting.use(copySources())
  for (const name of names) {
    await applyPatch(copy.path, join(import.meta.dirname, `../breaks/${name}.patch`))
  }
  const args = ['--conditions=plant-store-source', 'build.ts']
  const build = async (app: string): Promise<Command> => {
    const folder = join(copy.path, 'apps', app)
    await run(process.execPath, args, { cwd: folder })
    return [process.execPath, join(folder, 'dist/main.js')]
  }
  const [server, commandLine] = await Promise.all([build('api'), build('cli')])

  const resources = starting.move()
  return { server, commandLine, [Symbol.dispose]: () => resources.dispose() }
}
