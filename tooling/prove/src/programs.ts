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

/** Programs in a folder that is removed when they are disposed of. */
export type PatchedPrograms = Awaited<ReturnType<typeof buildPatched>>

const run = promisify(execFile)
const patchFile = (name: string) => join(import.meta.dirname, `../breaks/${name}.patch`)

/** Copies the sources, applies patches of `breaks`, and builds the programs. */
export async function buildPatched(...names: readonly string[]) {
  using starting = new DisposableStack()
  const copy = starting.use(copySources())
  for (const name of names) {
    await applyPatch(copy.path, patchFile(name))
  }
  const apps = ['api', 'cli'].map(name => join(copy.path, 'apps', name))
  await Promise.all(apps.map(build))

  const resources = starting.move()
  const programs: Programs = {
    server: [process.execPath, join(copy.path, 'apps/api/dist/main.js')],
    commandLine: [process.execPath, join(copy.path, 'apps/cli/dist/main.js')],
  }
  return {
    ...programs,
    [Symbol.dispose]: () => resources.dispose(),
  }
}

async function build(app: string): Promise<void> {
  const args = ['--conditions=plant-store-source', 'build.ts']
  await run(process.execPath, args, { cwd: app })
}
