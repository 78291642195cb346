import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { expect, inject, test } from 'vitest'
import { run } from '../src/run.ts'

const { folder, packages } = inject('installed')
const attw = join(import.meta.dirname, '../node_modules/.bin/attw')

test.each(packages)('$name is clean for publint', async ({ tarball }) => {
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
  for (const [dependency, range] of Object.entries(manifest.dependencies ?? {})) {
    if (dependency.startsWith('@plant-store/'))
      expect([dependency, range]).toEqual([dependency, expect.stringMatching(/^\^/)])
  }
  const { size } = await stat(tarball)
  console.log(`${name}: ${size} bytes, ${files.length} files`)
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
