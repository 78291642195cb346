import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { start } from '../src/run.ts'
import { compile } from './compile.ts'

const root = join(import.meta.dirname, '../../..')
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
  module: 'preserve',
  types: [],
  lib: ['es2022', 'dom', 'dom.iterable'],
}

test('a client that openapi-ts makes of the description compiles', async () => {
  const cwd = join(temporaryFolder(), 'project')
  mkdirSync(cwd)
  const program = join(import.meta.dirname, '../node_modules/.bin/openapi-ts')
  const options = ['-o', 'client', '-c', '@hey-api/client-fetch', '--no-log-file']
  await start(program, ['-i', description, ...options], { cwd })

  const faults = await compile(cwd, { 'use.ts': use }, compilerOptions)

  expect(faults).toBe('')
})
