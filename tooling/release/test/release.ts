import { globSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isInstalled, temporaryFolder } from '@plant-store/harness'
import type { TestProject } from 'vitest/node'
import { platform } from '../src/folder.ts'
import { start } from '../src/run.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /**
     * The folder of a release, and `unpacked`, the content of its archive. Absent where
     * none can be made.
     */
    out: string | undefined
  }
}

/** Makes a release while other tests run (`globalSetup`). */
export default function setUp(project: TestProject): (() => Promise<void>) | undefined {
  if (`${process.platform}-${process.arch}` !== platform || !isInstalled('dpkg-query')) {
    project.provide('out', undefined)
    return
  }
  const folder = temporaryFolder()
  project.provide('out', folder.path)
  const image = project.name.includes('image') && isInstalled('umoci') ? ['--image'] : []
  const making = make(folder.path, image)
  making.catch(() => {})
  return () => making.finally(() => folder.remove())
}

async function make(out: string, image: readonly string[]): Promise<void> {
  const program = join(import.meta.dirname, '../src/main.ts')
  await start(process.execPath, [program, '--out', out, ...image])
  const unpacked = join(out, 'unpacked')
  mkdirSync(unpacked)
  const [archive = ''] = globSync('*.tar.gz', { cwd: out })
  await start('tar', ['-xzf', join(out, archive), '-C', unpacked, '--strip-components=1'])
  writeFileSync(join(out, 'made'), '')
}
