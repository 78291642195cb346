import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Server, startServer } from '@plant-store/harness'
import { nodeOf } from '@plant-store/harness/npm-program'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readManifest, run, runIn } from '../src/run.ts'
import { compile } from './compile.ts'
import { assertKeepsPlants } from './machine.ts'
import {
  consumerFolder,
  folder,
  oldestNode,
  packAndInstall,
  packages,
  program,
  programFolder,
} from './pack.ts'

beforeAll(packAndInstall)
const main = join(programFolder, 'node_modules/plant-store/dist/main.js')
const require = createRequire(import.meta.url)
const requireOfAttw = createRequire(require.resolve('@arethetypeswrong/cli/package.json'))
/**
 * The functions that the program of "Are the types wrong" calls. The program itself takes
 * 30 times the time.
 */
const { checkPackage, createPackageFromTarballData } = await import(
  requireOfAttw.resolve('@arethetypeswrong/core')
)
const root = join(import.meta.dirname, '../../..')
/** The files of every package. */
const ofEvery = ['LICENSE', 'README.md', 'package.json']
const filesIn = (tarball: string) =>
  run('tar', '-tzf', tarball)
    .trim()
    .replaceAll(/^package\//gm, '')
    .split('\n')
    .sort()
const bytesOf = (tarball: string) => new Uint8Array(readFileSync(tarball))
const fetched = (version: string) =>
  needs(`Node ${version} (CI fetches it)`, existsSync(nodeOf(version).path))

test.each([...packages, program])('$name is clean for publint', async ({ tarball }) => {
  const pack = { tarball: bytesOf(tarball).buffer as ArrayBuffer }
  const { messages, pkg } = await publint({ strict: true, pack })
  const texts = messages.map(message => formatMessage(message, pkg, { color: false }))
  expect(texts).toEqual([])
})

describe.each(packages)('$name', ({ name, source, tarball }) => {
  test('is clean for Are the types wrong', async () => {
    const { problems } = await checkPackage(
      createPackageFromTarballData(bytesOf(tarball)),
    )
    // `require` is for nobody.
    const ofImport = problems.filter(
      ({ resolutionKind }: { resolutionKind: string }) =>
        !/^node1(0|6-cjs)$/.test(resolutionKind),
    )
    expect(ofImport).toEqual([])
  })

  test('ships its sources, what is built of them, and nothing else', () => {
    const sources = globSync('src/**/*.ts', { cwd: source })
    const built = sources
      .filter(file => !file.endsWith('.d.ts'))
      .map(file => file.replace(/^src\//, 'dist/').replace(/\.ts$/, ''))
      .flatMap(stem =>
        ['.js', '.js.map', '.d.ts', '.d.ts.map'].map(ending => stem + ending),
      )
    expect(filesIn(tarball)).toEqual([...ofEvery, ...sources, ...built].sort())

    const manifest = readManifest(join(folder, 'node_modules', name))
    const exports = { './package.json': './package.json' }
    expect(manifest).toMatchObject({ license: 'MIT', sideEffects: false, exports })
    expect(JSON.stringify(manifest)).not.toMatch(/workspace:|catalog:|plant-store-source/)
  })

  const oldest = oldestNode(source)
  test(`loads on Node ${oldest}, the oldest that it names`, fetched(oldest), () => {
    const script = `await import('${name}'); console.log(process.version)`
    const { path } = nodeOf(oldest)
    expect(runIn(folder, path, '--input-type=module', '-e', script)).toBe(`v${oldest}\n`)
  })
})

const examples = packages.flatMap(({ name, source }) => {
  const readme = readFileSync(join(source, 'README.md'), 'utf8')
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)]
  return blocks.map(([, code = ''], n) => {
    const file = `readme-${name.replace('@plant-store/', '')}-${n}.ts`
    return { name, file, code }
  })
})

describe('copied, beside a store that has just started', () => {
  const token = 'plantstore_for-the-examples'
  let server: Server
  beforeAll(async () => {
    const command = [process.execPath, main, 'serve'] as const
    server = await startServer({ command, environment: { ACCESS_TOKENS: token } })
    vi.stubEnv('TOKEN', token)
    // An example imports what the command of its README makes.
    const readme = readFileSync(join(root, 'packages/json/README.md'), 'utf8')
    const [, generate = ''] = /^npx (openapi-typescript .*)$/m.exec(readme) ?? []
    const description = join(root, 'docs/openapi.json')
    const programs = join(import.meta.dirname, '../node_modules/.bin')
    const here = generate.replace(/http:\S+/, description)
    runIn(folder, 'sh', '-c', `${programs}/${here}`)
  })
  afterAll(() => server.end())

  test.each(examples)('the example $file prints what it says', ({ file, code }) => {
    const promised = [...code.matchAll(/\/\/ → (.*)$/gm)].map(([, line]) => line)
    writeFileSync(
      join(folder, file),
      code.replaceAll('http://127.0.0.1:3000', server.url),
    )
    const printed = () =>
      runIn(folder, process.execPath, file).trimEnd().split('\n').filter(Boolean)

    expect(printed(), 'the first time').toEqual(promised)
    expect(printed(), 'the second time').toEqual(promised)
  })

  test('every example compiles with the oldest TypeScript', async () => {
    const wrong = `import { parsePlantId } from '@plant-store/domain'
    // @ts-expect-error
    export const id: number = parsePlantId(1n)`
    const exported = ['domain', 'domain/testing', 'json', 'client'].map(
      name => `export * as ${name.replace('/', '_')} from '@plant-store/${name}'`,
    )
    const files = Object.fromEntries(examples.map(({ file, code }) => [file, code]))
    const options = {
      lib: ['es2022', 'dom', 'dom.asynciterable'],
      types: ['node'],
      // The newest types of Node need a newer compiler.
      typeRoots: ['types-oldest'],
      allowImportingTsExtensions: true,
      exactOptionalPropertyTypes: true,
    }
    const sources = { ...files, 'all.mts': exported.join('\n'), 'wrong.ts': wrong }

    const faults = await compile(
      folder,
      sources,
      options,
      require.resolve('typescript-oldest/bin/tsc'),
    )

    expect(faults).toBe('')
  })
})

// TypeScript can write a type into a declaration only if it has a name there.
test.each([
  ['client', consumerFolder, ['dom'], 'all.createPlantClient(undefined as never)'],
  ['domain', folder, [], 'all.createPlantUseCases(undefined as never)'],
  ['json', folder, [], 'all'],
])(
  '%s needs no types of Node or after es2022, and names its own',
  async (name, cwd, lib, made) => {
    const file = `emitted-${name}.ts`
    const code = `import * as all from '@plant-store/${name}'
export const copies = [{ ...all }, { ...${made} }]
type Results<Value> = { [Name in keyof Value]: Value[Name] extends (...given: never) => infer Result ? Awaited<Result> : never }
export const results = undefined as unknown as Results<typeof all>`
    const options = {
      declaration: true,
      emitDeclarationOnly: true,
      noEmit: false,
      outDir: 'emitted',
      lib: ['es2022', ...lib],
      types: [],
    }

    expect(await compile(cwd, { [file]: code }, options)).toBe('')
    const emitted = join(cwd, 'emitted', `emitted-${name}.d.ts`)
    expect(readFileSync(emitted, 'utf8')).not.toMatch(/\bany\b/)
  },
)

test('npm installs the program and two more, and runs none of their scripts', () => {
  const folders = globSync('node_modules/*/', { cwd: programFolder })
  const manifests = folders.map(path => readManifest(join(programFolder, path)))
  const scripts = manifests.flatMap(manifest => Object.keys(manifest.scripts ?? {}))

  const names = manifests.map(({ name }) => name)
  expect(names.sort()).toEqual(['better-sqlite3', 'node-addon-api', 'plant-store'])
  expect(scripts.filter(script => /^(pre|post)?install$/.test(script))).toEqual([])
})

test('the program contains its libraries and their terms', () => {
  const { source, tarball } = program
  const built = globSync('dist/**/*.*', { cwd: source })
  const shipped = built.filter(file => !file.endsWith('.map'))
  expect(filesIn(tarball)).toEqual([...ofEvery, ...shipped].sort())

  // The comments of esbuild say where each part came from.
  const code = shipped.filter(file => /^(?!.*docs\/).*\.js$/.test(file))
  const text = code.map(file => readFileSync(join(source, file), 'utf8')).join('\n')
  const origins = text.matchAll(/^\/\/ .*\/node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\//gm)
  const libraries = new Set(Array.from(origins, ([, name = '']) => name))
  const terms = readFileSync(join(source, 'dist/third-party.txt'), 'utf8')
  const withTerms = terms.matchAll(/^(\S+) \d\S* \(\S.*\)$/gm)
  expect(libraries).toContain('fastify')
  expect(Array.from(withTerms, ([, name]) => name)).toEqual(
    expect.arrayContaining([...libraries]),
  )
})

const oldest = oldestNode(program.source)
test(`the program serves on Node ${oldest}`, fetched(oldest), async () => {
  const folder = temporaryFolder()
  const command = [nodeOf(oldest).path, main] as const
  await using server = await startServer({ folder, command: [...command, 'serve'] })
  await assertKeepsPlants(server, command, { folder })
})
