import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const folder = join(import.meta.dirname, '../dist')
const command = (name: string) => join(import.meta.dirname, '../node_modules/.bin', name)
/** A test of the package compares it with what is served. */
const description = join(import.meta.dirname, '../../../packages/http/test/description.snapshot')

const compilerOptions = {
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  module: 'preserve',
  strict: true,
  noEmit: true,
}

test.each([
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
    args: ['-i', description, '-o', 'client', '-c', '@hey-api/client-fetch', '--no-log-file'],
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
])(
  'a client that $generator makes of the description compiles',
  async ({ generator, args, use }) => {
    const cwd = join(folder, generator)
    await rm(cwd, { recursive: true, force: true })
    await mkdir(cwd, { recursive: true })
    await run(command(generator), args, { cwd })
    await writeFile(join(cwd, 'use.ts'), use.join('\n'))
    await writeFile(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }))
    const errors = await run(command('tsc'), ['-p', 'tsconfig.json'], { cwd }).catch(({ stdout }) => stdout)
    expect(errors).toMatchObject({ stdout: '' })
  },
  120_000,
)
