import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { start } from '../src/run.ts'

const root = join(import.meta.dirname, '../../..')
const tsc = join(root, 'node_modules/typescript/bin/tsc')
/** A test of the package compares it with what is served. */
const description = join(root, 'docs/openapi.json')

/** How somebody uses it. What is wrong must not compile. */
const use = `import { createPlant, createPlants } from './client/index'
export const one = createPlant({ body: { id: 1, name: 'n' } })
export const many = createPlants({ body: '{"id":1,"name":"n"}', bodySerializer: null })
// @ts-expect-error
export const wrong = createPlant({ body: { id: 'x', name: 'n' } })
`
const compilerOptions = {
  target: 'es2022',
  module: 'preserve',
  strict: true,
  noEmit: true,
  types: [],
  lib: ['es2022', 'dom', 'dom.iterable'],
}

test('a client that openapi-ts makes of the description compiles', async () => {
  const cwd = join(temporaryFolder(), 'project')
  mkdirSync(cwd)
  const program = join(import.meta.dirname, '../node_modules/.bin/openapi-ts')
  const options = ['-o', 'client', '-c', '@hey-api/client-fetch', '--no-log-file']
  await start(program, ['-i', description, ...options], { cwd })
  writeFileSync(join(cwd, 'use.ts'), use)
  writeFileSync(
    join(cwd, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: ['use.ts'] }),
  )

  const compiling = start(process.execPath, [tsc, '-p', cwd], { cwd })

  await expect(compiling).resolves.toMatchObject({ stdout: '' })
})
