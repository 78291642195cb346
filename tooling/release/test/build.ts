import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import type { TestProject } from 'vitest/node'
import { platform } from '../src/folder.ts'
import { run } from '../src/run.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of a release, and `unpacked`, the content of its archive. Absent where none can be made. */
    out: string | undefined
  }
}

const isInstalled = (program: string) => spawnSync(program, ['--version']).status === 0

/** For `globalSetup`: makes a release. */
export default function setUp(project: TestProject): (() => void) | undefined {
  if (`${process.platform}-${process.arch}` !== platform || !isInstalled('dpkg-query')) {
    project.provide('out', undefined)
    return
  }
  const folder = temporaryFolder()
  const program = join(import.meta.dirname, '../src/main.ts')
  run(process.execPath, program, '--out', folder.path, ...(isInstalled('umoci') ? ['--image'] : []))
  const unpacked = join(folder.path, 'unpacked')
  mkdirSync(unpacked)
  const [archive = ''] = globSync('*.tar.gz', { cwd: folder.path })
  run('tar', '-xzf', join(folder.path, archive), '-C', unpacked, '--strip-components=1')
  project.provide('out', folder.path)
  return () => folder[Symbol.dispose]()
}
