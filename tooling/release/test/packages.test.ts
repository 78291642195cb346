import { randomUUID } from 'node:crypto'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Server, startServer } from '@plant-store/harness'
import { hasBrowser, launchBrowser } from '@plant-store/harness/browser'
import { bun, nodeOf } from '@plant-store/harness/npm-program'
import { needs } from '@plant-store/harness/vitest'
import { build } from 'esbuild'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { runIn } from '../src/run.ts'
import { compiled, oldestNode } from './install.ts'
import { made } from './machine.ts'

const { folder, packages, program } = inject('installed')
await made(folder)
const require = createRequire(import.meta.url)
const requireOfAttw = createRequire(require.resolve('@arethetypeswrong/cli/package.json'))
/**
 * The functions that the program of "Are the types wrong" calls. The program itself takes
 * 30 times the time.
 */
const { checkPackage, createPackageFromTarballData } = await import(
  requireOfAttw.resolve('@arethetypeswrong/core')
)
const readManifest = (path: string) =>
  JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
const node = (...args: readonly string[]) => runIn(folder, process.execPath, ...args)

test.each([...packages, program])('$name is clean for publint', async ({ tarball }) => {
  const bytes = new Uint8Array(readFileSync(tarball))
  const { messages, pkg } = await publint({
    strict: true,
    pack: { tarball: bytes.buffer },
  })
  const texts = messages.map(message => formatMessage(message, pkg, { color: false }))
  expect(texts).toEqual([])
})

describe.each(packages)('$name', ({ name, source, tarball }) => {
  const installed = join(folder, 'node_modules', name)
  const manifest = readManifest(installed)

  test('is clean for Are the types wrong', async () => {
    const packed = createPackageFromTarballData(new Uint8Array(readFileSync(tarball)))
    const { problems } = (await checkPackage(packed)) as {
      problems: { resolutionKind: string }[]
    }
    const kinds = problems.map(({ resolutionKind }) => resolutionKind)
    // `require` is for nobody.
    expect(kinds.filter(kind => kind !== 'node10' && kind !== 'node16-cjs')).toEqual([])
  })

  test('ships its sources, what is built of them, and nothing else', () => {
    const files = globSync('**/*.*', { cwd: installed, exclude: ['node_modules/**'] })
    const sources = files.filter(file => file.startsWith('src/'))
    const built = sources
      .filter(file => !file.endsWith('.d.ts'))
      .map(file => file.replace(/^src\//, 'dist/').replace(/\.ts$/, ''))
      .flatMap(stem =>
        ['.js', '.js.map', '.d.ts', '.d.ts.map'].map(ending => stem + ending),
      )
    expect(files.sort()).toEqual(
      ['README.md', 'package.json', ...sources, ...built].sort(),
    )
    expect(existsSync(join(installed, 'LICENSE'))).toBe(true)

    expect(JSON.stringify(manifest)).not.toMatch(/workspace:|catalog:/)
    const { exports } = readManifest(source)
    for (const paths of Object.values<Record<string, string>>(exports)) {
      delete paths['plant-store-source']
    }
    expect(manifest).toMatchObject({ license: 'MIT', sideEffects: false, exports })
    const dependencies = Object.entries<string>(manifest.dependencies ?? {})
    const ownDependencies = dependencies.filter(([dependency]) =>
      dependency.startsWith('@plant-store/'),
    )
    for (const [dependency, range] of ownDependencies) {
      expect(range, dependency).toMatch(/^\^/)
    }
  })

  const oldest = oldestNode(source)
  const { path } = nodeOf(oldest)
  const fetched = needs('older versions of Node (CI fetches them)', existsSync(path))
  test(`loads on Node ${oldest}, the oldest that it names`, fetched, () => {
    const script = `await import('${name}'); console.log(process.version)`
    expect(runIn(folder, path, '--input-type=module', '-e', script)).toBe(`v${oldest}\n`)
  })
})

const purePackages = packages.filter(({ name }) =>
  ['@plant-store/domain', '@plant-store/json'].includes(name),
)

test.each(purePackages)('$name depends on nothing', ({ name }) => {
  const manifest = readManifest(join(folder, 'node_modules', name))

  expect(manifest.dependencies).toBeUndefined()
  expect(manifest.peerDependencies).toBeUndefined()
})

const examples = [
  ['plant-store', join(import.meta.dirname, '../../../README.md')] as const,
  ...packages.map(
    ({ name }) => [name, join(folder, 'node_modules', name, 'README.md')] as const,
  ),
].flatMap(([name, readme]) =>
  [...readFileSync(readme, 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(
    ([, code = ''], n) => {
      const file = `readme-${name.replace('@plant-store/', '')}-${n}.ts`
      writeFileSync(join(folder, file), code)
      return { name, file, code }
    },
  ),
)

// An example imports what the command of its README makes.
const jsonReadme = readFileSync(
  join(folder, 'node_modules/@plant-store/json/README.md'),
  'utf8',
)
const [, generate = ''] = /^npx (openapi-typescript .*)$/m.exec(jsonReadme) ?? []
const description = join(import.meta.dirname, '../../../docs/openapi.json')
const generateHere = generate.replace(/http:\S+/, description)
runIn(
  folder,
  'sh',
  '-c',
  `${join(import.meta.dirname, '../node_modules/.bin')}/${generateHere}`,
)

test('every package has examples', () => {
  expect(packages).toHaveLength(3)
  expect(examples.map(({ name }) => name)).toEqual(
    expect.arrayContaining(packages.map(({ name }) => name)),
  )
})

describe('copied, beside a store that has just started', () => {
  const token = 'plantstore_for-the-examples'
  let server: Server
  beforeAll(async () => {
    const program = join(folder, 'node_modules/plant-store/dist/main.js')
    const command = [process.execPath, program, 'serve'] as const
    server = await startServer({ command, environment: { ACCESS_TOKENS: token } })
    vi.stubEnv('TOKEN', token)
  })
  afterAll(async () => {
    vi.unstubAllEnvs()
    await server.end()
  })

  test.each(examples)('the example $file prints what it says', ({ file, code }) => {
    const promised = [...code.matchAll(/\/\/ → (.*)$/gm)].map(([, line]) => line)
    const here = code.replaceAll('http://127.0.0.1:3000', server.url)
    writeFileSync(join(folder, file), here)
    const printed = () => node(file).trimEnd().split('\n').filter(Boolean)

    expect(printed(), 'the first time').toEqual(promised)
    expect(printed(), 'the second time').toEqual(promised)
  })
})

const newest = join(import.meta.dirname, '../../../node_modules/typescript/bin/tsc')

/** Returns what a compiler says of files in the project. */
async function compile(
  tsc: string,
  files: Readonly<Record<string, string>>,
  compilerOptions: object,
) {
  for (const [file, code] of Object.entries(files)) {
    writeFileSync(join(folder, file), code)
  }
  const strict = { target: 'es2022', module: 'nodenext', strict: true, noEmit: true }
  // Only the compiler's own declarations are trusted.
  const options = { ...strict, skipDefaultLibCheck: true, ...compilerOptions }
  const config = join(folder, `tsconfig.${randomUUID()}.json`)
  writeFileSync(
    config,
    JSON.stringify({ compilerOptions: options, files: Object.keys(files) }),
  )
  return await compiled(tsc, config)
}

const exportsOf = (names: readonly string[]) =>
  Object.fromEntries(
    names.map(name => [
      `all-${name.replace('/', '-')}.mts`,
      `export * from '@plant-store/${name}'\n`,
    ]),
  )
const withoutNode = ['domain', 'domain/testing', 'json']
const inBrowsers = ['client']

test.concurrent.each([
  // The newest types of Node need a newer compiler.
  {
    age: 'oldest',
    tsc: require.resolve('typescript-oldest/bin/tsc'),
    typeRoots: ['types-oldest'],
  },
  { age: 'newest', tsc: newest },
])(
  'with the $age TypeScript every example compiles, and every declaration',
  async ({ tsc, typeRoots }) => {
    const wrong = `import { parsePlantId } from '@plant-store/domain'
    // @ts-expect-error
    export const id: number = parsePlantId(1n)`
    const files = Object.fromEntries(examples.map(({ file, code }) => [file, code]))
    const options = {
      lib: ['es2022', 'dom', 'dom.asynciterable'],
      types: ['node'],
      typeRoots,
    }
    const strict = {
      ...options,
      allowImportingTsExtensions: true,
      exactOptionalPropertyTypes: true,
    }
    const all = {
      ...files,
      ...exportsOf([...withoutNode, ...inBrowsers]),
      'wrong.ts': wrong,
    }
    expect(await compile(tsc, all, strict)).toBe('')
  },
)

test.concurrent.each([
  ['domain and json', withoutNode, []],
  ['client', inBrowsers, ['dom']],
])(
  '%s: no types of Node are needed, and nothing newer than es2022',
  async (_, names, lib) => {
    const options = { lib: ['es2022', ...lib], types: [] }
    const faults = await compile(newest, exportsOf(names), options)
    expect(faults).toBe('')
  },
)

/** Takes a plant through the domain's rules, and through the client. */
const trial = `
import { parsePlant, int64Max } from '@plant-store/domain'
import { createPlantClient } from '@plant-store/client'
export async function tryOut() {
  const plant = parsePlant({ id: int64Max, name: 'Monstera' })
  const fetch = async () => new Response('[{"id":9007199254740993,"name":"Fern"}]')
  const client = createPlantClient({ baseUrl: 'http://store.example/garden', token: 't', fetch })
  const { items } = await client.list()
  return [plant, ...items].map(({ id }) => String(id)).join()
}
`
const outcome = '9223372036854775807,9007199254740993'

test(
  'domain and client run on Bun',
  needs('Bun (`pnpm bench` fetches it)', existsSync(bun.path)),
  () => {
    writeFileSync(join(folder, 'bun.ts'), `${trial}console.log(await tryOut())\n`)
    expect(runIn(folder, bun.path, 'bun.ts')).toBe(`${outcome}\n`)
  },
)

test('domain and client run in a browser', needs('chromium', hasBrowser), async () => {
  await using browser = await launchBrowser()
  const page = await browser.newPage()
  await page.addScriptTag({
    content: await minified(`${trial}globalThis.tryOut = tryOut`),
    type: 'module',
  })
  await page.waitForFunction('globalThis.tryOut !== undefined')
  expect(await page.evaluate('tryOut()')).toBe(outcome)
})

test.each([
  ["export * from '@plant-store/domain'", 6_300],
  ["export { parsePlantId } from '@plant-store/domain'", 1_000],
  ["export * from '@plant-store/client'", 15_300],
])(
  '%s, minified for a browser, is small and needs nothing of Node',
  async (code, lengthMax) => {
    const { length } = await minified(code)
    console.log(`${code}: ${length} bytes`)
    expect(length).toBeLessThan(lengthMax)
  },
)

async function minified(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: folder },
    ...{
      bundle: true,
      minify: true,
      write: false,
      format: 'esm',
      platform: 'browser',
      target: 'es2022',
    },
  })
  return outputFiles[0]?.text as string
}
