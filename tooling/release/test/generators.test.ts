import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { start } from '../src/run.ts'
import { compiled } from './install.ts'

/** A test of the package compares it with what is served. */
const description = join(import.meta.dirname, '../../../docs/openapi.json')

const generators = [
  {
    generator: 'openapi-typescript',
    args: [description, '-o', 'client.ts'],
    use: [
      `import type { paths } from './client'`,
      `type NewPlant = paths['/plants']['post']['requestBody']['content']['application/json']`,
      `export const plant: NewPlant = { id: 1, name: 'n' }`,
      `// @ts-expect-error`,
      `export const wrong: NewPlant = { id: 'x', name: 'n' }`,
    ],
  },
  {
    generator: 'openapi-ts',
    args: [
      '-i',
      description,
      '-o',
      'client',
      '-c',
      '@hey-api/client-fetch',
      '--no-log-file',
    ],
    use: [
      `import { createPlant, createPlants } from './client/index'`,
      `export const one = createPlant({ body: { id: 1, name: 'n' } })`,
      `export const many = createPlants({ body: '{"id":1,"name":"n"}', bodySerializer: null })`,
      `// @ts-expect-error`,
      `export const wrong = createPlant({ body: { id: 'x', name: 'n' } })`,
    ],
  },
  {
    generator: 'orval',
    args: ['--input', description, '--output', 'client.ts', '--client', 'fetch'],
    use: [
      `import { createPlant } from './client'`,
      `export const one = createPlant({ id: 1, name: 'n' })`,
      `// @ts-expect-error`,
      `export const wrong = createPlant({ id: 'x', name: 'n' })`,
    ],
  },
]

const compilerOptions = {
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  module: 'preserve',
  strict: true,
  noEmit: true,
  types: [],
}

const temporary = temporaryFolder()
afterAll(() => temporary.remove())
/** The errors of the compiler for all clients at once. */
let errors: readonly string[]
beforeAll(async () => {
  const root = temporary.path
  await Promise.all(
    generators.map(async ({ generator, args, use }) => {
      const cwd = join(root, generator)
      mkdirSync(cwd)
      await start(join(import.meta.dirname, '../node_modules/.bin', generator), args, {
        cwd,
      })
      writeFileSync(join(cwd, 'use.ts'), use.join('\n'))
    }),
  )
  const files = generators.map(({ generator }) => `${generator}/use.ts`)
  const config = join(root, 'tsconfig.json')
  writeFileSync(config, JSON.stringify({ compilerOptions, files }))
  const said = await compiled(
    join(import.meta.dirname, '../../../node_modules/typescript/bin/tsc'),
    config,
  )
  errors = said.split('\n').filter(Boolean)
})

test.each(generators)(
  'a client that $generator makes of the description compiles',
  ({ generator }) => {
    const others = generators.filter(each => each.generator !== generator)
    const isOfAnother = (line: string) =>
      others.some(each => line.startsWith(`${each.generator}/`))
    expect(errors.filter(line => !isOfAnother(line))).toEqual([])
  },
)
