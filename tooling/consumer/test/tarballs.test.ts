import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { expect, inject, test } from 'vitest'
import { run } from '../src/run.ts'

const { folder, packages, program } = inject('installed')
const attw = join(import.meta.dirname, '../node_modules/.bin/attw')

test.each([...packages, program])('$name is clean for publint', async ({ tarball }) => {
  const bytes = new Uint8Array(await readFile(tarball))
  const { messages, pkg } = await publint({ strict: true, pack: { tarball: bytes.buffer } })
  expect(messages.map(message => formatMessage(message, pkg, { color: false }))).toEqual([])
})

test.each(packages)('$name is clean for Are the types wrong', async ({ tarball }) => {
  // It fails when something is wrong for those who import; `require` is for nobody.
  const report = await run(attw, ['--profile', 'esm-only', '--format', 'json', tarball], folder)
  const { analysis } = JSON.parse(report) as { analysis: { problems: { resolutionKind: string }[] } }
  const kinds = analysis.problems.map(({ resolutionKind }) => resolutionKind)
  expect(kinds.filter(kind => kind !== 'node10' && kind !== 'node16-cjs')).toEqual([])
})

test.each(packages)('$name ships what is needed and nothing else', async ({ name, source, tarball }) => {
  const installed = join(folder, 'node_modules', name)
  const files = (await readdir(installed, { recursive: true, withFileTypes: true }))
    .filter(file => file.isFile() && !file.parentPath.includes('node_modules/', installed.length))
    .map(file => join(file.parentPath, file.name).slice(installed.length + 1))
  const sources = files.filter(file => file.startsWith('src/'))
  const built = sources.flatMap(file => {
    // Declarations of others' modules build nothing.
    if (file.endsWith('.d.ts')) return []
    const stem = file.replace(/^src\//, 'dist/').replace(/\.ts$/, '')
    return ['.js', '.js.map', '.d.ts', '.d.ts.map'].map(ending => stem + ending)
  })
  // What a program serves and doesn't run.
  const pages = await readdir(join(source, 'dist/docs')).catch(() => [])
  const served = pages.map(file => `dist/docs/${file}`)
  expect(files.sort()).toEqual(
    ['LICENSE', 'README.md', 'package.json', ...sources, ...built, ...served].sort(),
  )

  // The maps lead to what is there.
  for (const map of built.filter(file => file.endsWith('.map'))) {
    const { sources } = JSON.parse(await readFile(join(installed, map), 'utf8')) as { sources: string[] }
    for (const file of sources) await stat(join(installed, map, '..', file))
  }

  const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
  expect(manifest).toMatchObject({ type: 'module', license: 'MIT', sideEffects: false })
  expect(manifest.engines.node).toMatch(/^>=\d+/)
  expect(JSON.stringify(manifest)).not.toMatch(/workspace:|catalog:/)
  const { exports } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8'))
  for (const paths of Object.values<Record<string, string>>(exports)) delete paths['plant-store-source']
  expect(manifest.exports).toEqual(exports)
  for (const [dependency, range] of Object.entries(manifest.dependencies ?? {})) {
    if (dependency.startsWith('@plant-store/'))
      expect([dependency, range]).toEqual([dependency, expect.stringMatching(/^\^/)])
  }
  const { size } = await stat(tarball)
  console.log(`${name}: ${size} bytes, ${files.length} files`)
})

test('the program ships with its libraries, their terms, and nothing to install but SQLite', async () => {
  const packed = (await run('tar', ['-tzf', program.tarball], folder)).trim().split('\n')
  const built = (await readdir(join(program.source, 'dist'), { recursive: true, withFileTypes: true }))
    .filter(file => file.isFile() && !file.name.endsWith('.map'))
    .map(file => join(file.parentPath, file.name).slice(program.source.length + 1))
  expect(built).toContain('dist/docs/swagger-ui-bundle.js')
  expect(packed.map(file => file.replace('package/', '')).sort()).toEqual(
    ['LICENSE', 'README.md', 'package.json', ...built].sort(),
  )
  const manifest = JSON.parse(await run('tar', ['-xzOf', program.tarball, 'package/package.json'], folder))
  expect(Object.keys(manifest.dependencies)).toEqual(['better-sqlite3'])

  // As esbuild notes where each part came from.
  const code = built.filter(file => file.endsWith('.js') && !file.includes('docs/'))
  const texts = await Promise.all(code.map(file => readFile(join(program.source, file), 'utf8')))
  const origins = texts.flatMap(text => [
    ...text.matchAll(/^\/\/ .*\/node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\//gm),
  ])
  const libraries = new Set(origins.map(([, name]) => name as string))
  expect([...libraries]).toEqual(expect.arrayContaining(['commander', 'fastify', 'pg', 'pino']))
  const terms = await readFile(join(program.source, 'dist/third-party.txt'), 'utf8')
  for (const name of libraries) expect(terms).toMatch(new RegExp(`^${name} \\d\\S* \\(\\S.*\\)$`, 'm'))
})

test('the domain and the access tokens depend on nothing', async () => {
  for (const name of ['@plant-store/domain', '@plant-store/access', '@plant-store/json']) {
    const manifest = JSON.parse(await readFile(join(folder, 'node_modules', name, 'package.json'), 'utf8'))
    expect(manifest.dependencies ?? {}).toEqual({})
    expect(manifest.peerDependencies ?? {}).toEqual({})
  }
})

test.each(packages)('$name has no door but its exports', async ({ name }) => {
  const importOf = (path: string) =>
    run(process.execPath, ['--input-type=module', '-e', `await import('${name}${path}')`], folder)
  await importOf('')
  await expect(importOf('/dist/index.js')).rejects.toThrow(/ERR_PACKAGE_PATH_NOT_EXPORTED/)
})
