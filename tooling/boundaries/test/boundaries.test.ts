import { spawnSync } from 'node:child_process'
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { drawPackages, withPicture } from './picture.ts'

const root = join(import.meta.dirname, '../../..')
const biome = join(root, 'node_modules/@biomejs/biome/bin/biome')
const pageFile = join(root, 'docs/architecture.md')
const page = readFileSync(pageFile, 'utf8')

/** Lines that break the table of docs/architecture.md, each as a source of its own. `biome ci` reads the real ones. */
const forbidden = [
  ['packages/domain/src', "import { readFile } from 'node:fs/promises'"],
  ['packages/domain/src', "import type { Gate } from '@plant-store/access'"],
  ['packages/domain/src', "export { Kysely } from 'kysely'"],
  ['packages/json/src', "export const domain = import('@plant-store/domain')"],
  ['packages/access/src', "import { readFileSync } from 'node:fs'"],
  ['packages/webhooks/src', "import { request } from 'node:https'"],
  ['packages/webhooks/src', "import type { Storage } from '@plant-store/persistence'"],
  ['packages/jwt/src', "import { createServer } from 'node:http'"],
  ['packages/client/src', "import { createServer } from 'node:http'"],
  ['packages/http/src', "import type { Storage } from '@plant-store/persistence'"],
  ['packages/http/src/plants', "import pg from 'pg'"],
  ['packages/persistence/src', "import { createServer } from '@plant-store/http/server'"],
  ['packages/persistence/src/plants', "import Database from 'better-sqlite3'"],
  ['packages/engine/src/sqlite', "import { fastify } from 'fastify'"],
  ['packages/engine/src', "import type { Plant } from '@plant-store/domain'"],
  ['packages/http/src', "import { plant } from '@plant-store/domain/testing'"],
  ['apps/api/src', "import { plant } from '@plant-store/domain/testing'"],
  ['packages/http/src', "import { serve } from '@plant-store/api/serve'"],
  ['apps/api/src', "export const command = import('plant-store')"],
  ['apps/cli/src', "import type { HttpThread } from '@plant-store/api/http-thread'"],
  ['packages/domain/src', "export * from './plant.ts'"],
] as const
const allowed = [
  ['packages/domain/src/testing', "import assert from 'node:assert/strict'"],
  ['packages/http/src/plants', "import { plant } from '@plant-store/domain'"],
  ['packages/webhooks/src', "import { createHmac } from 'node:crypto'"],
  ['packages/webhooks/src', "import type { PlantAdded } from '@plant-store/domain'"],
  ['packages/jwt/src', "import { jwtVerify } from 'jose'"],
  ['packages/persistence/src/plants', "import { sql } from 'kysely'"],
  ['packages/engine/src/sqlite', "import pg from 'pg'"],
  ['apps/api/src', "import { createServer } from '@plant-store/http/server'"],
  ['apps/cli/src', "export const server = import('@plant-store/api/serve')"],
] as const

test('Biome refuses each import that the table does not allow, and no other', () => {
  using temporary = mkdtempDisposableSync(join(tmpdir(), 'plant-store-boundaries-'))
  const folder = realpathSync(temporary.path)
  cpSync(join(root, 'biome.json'), join(folder, 'biome.json'))
  const write = ([place, line]: readonly [string, string], index: number) => {
    const path = `${place}/source-${index}.ts`
    mkdirSync(join(folder, place), { recursive: true })
    writeFileSync(join(folder, path), `${line}\n`)
    return path
  }
  const wrong = forbidden.map(write)
  allowed.map((each, index) => write(each, wrong.length + index))
  const rules = ['--only=style/noRestrictedImports', '--only=performance/noReExportAll']
  const { stdout } = spawnSync(
    process.execPath,
    [biome, 'lint', '--vcs-enabled=false', '--reporter=github', '--max-diagnostics=none', ...rules, '.'],
    { cwd: folder, encoding: 'utf8' },
  )
  const refused = [...stdout.matchAll(/file=([^,]+)/g)].map(([, path]) => relative(folder, path as string))
  expect(refused.sort()).toEqual(wrong.sort())
})

/** Returns the imports between the folders of a package, and files beside these, as `from to`. Types count too. */
function importsBetweenFolders(src: string): ReadonlySet<string> {
  const folderOf = (file: string) => relative(src, file).split('/')[0]
  const imports = globSync('**/*.ts', { cwd: src }).flatMap(name => {
    const file = join(src, name)
    const imported = [...readFileSync(file, 'utf8').matchAll(/(?:from |import |import\()'(\.[^']+)'/g)]
    return imported.map(([, path = '']) => [folderOf(file), folderOf(join(dirname(file), path))] as const)
  })
  return new Set(imports.filter(([from, to]) => from !== to).map(pair => pair.join(' ')))
}

/** Returns the imports that are part of a circle. */
function circlesIn(imports: ReadonlySet<string>): string[] {
  const left = new Set(imports)
  for (let size = -1; size !== left.size; ) {
    size = left.size
    const [froms, tos] = [0, 1].map(at => new Set([...left].map(pair => pair.split(' ')[at])))
    for (const pair of left) {
      const [from, to] = pair.split(' ')
      if (!tos?.has(from) || !froms?.has(to)) left.delete(pair)
    }
  }
  return [...left]
}

test('the imports between the folders of a package have one direction', () => {
  expect(circlesIn(new Set(['a b', 'b c', 'c a', 'c d']))).toEqual(['a b', 'b c', 'c a'])
  const sources = globSync('{apps,packages}/*/src', { cwd: root })
  const found = sources.map(src => [src, importsBetweenFolders(join(root, src))] as const)
  expect(Math.max(...found.map(([, imports]) => imports.size))).toBeGreaterThan(20)
  expect(found.flatMap(([src, imports]) => circlesIn(imports).map(pair => `${src}: ${pair}`))).toEqual([])
})

test('every package has a rule', () => {
  const { overrides } = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8'))
  const ruled = overrides.flatMap(({ includes }: { includes: string[] }) => includes)
  const packages = globSync('{apps,packages}/*', { cwd: root })
  expect(packages.length).toBeGreaterThan(8)
  for (const folder of packages) expect(ruled).toContain(`${folder}/src/**`)
})

test('no runtime dependency is declared at the root, where every package would see it', () => {
  const { dependencies = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  expect(dependencies).toEqual({})
})

test('the page on the architecture shows the packages as they are', async () => {
  const hint = 'run pnpm --filter @plant-store/boundaries draw'
  await expect(withPicture(page, drawPackages(root))).toMatchFileSnapshot(pageFile, hint)
  for (const arrow of ['cli --> api', 'api --> http', 'http --> domain', 'persistence --> engine']) {
    expect(page).toContain(`  ${arrow}\n`)
  }
})
