import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { run } from '../src/run.ts'

const { folder, packages } = inject('installed')
const require = createRequire(import.meta.url)

const compilers = [
  ['oldest', require.resolve('typescript-oldest/bin/tsc')],
  ['newest', join(dirname(require.resolve('typescript/package.json')), 'bin/tsc')],
] as const

/** Resolves to what the compiler has to say. */
async function compile(tsc: string, name: string, compilerOptions: object, files: readonly string[]) {
  const config = `tsconfig.${name}.json`
  await writeFile(join(folder, config), JSON.stringify({ compilerOptions, files }))
  return run(process.execPath, [tsc, '-p', config], folder)
}

/** What a stranger may have: nothing of the language that is newer. */
const strictOptions = {
  target: 'es2022',
  lib: ['es2022'],
  strict: true,
  noEmit: true,
}

test('there are packages, and each came from its tarball', async () => {
  expect(packages.map(({ name }) => name).sort()).toEqual([
    '@plant-store/access',
    '@plant-store/client',
    '@plant-store/domain',
    '@plant-store/http',
    '@plant-store/json',
    '@plant-store/jwt',
    '@plant-store/persistence',
    '@plant-store/webhooks',
  ])
  const lock = JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8'))
  const resolved = Object.entries<{ resolved?: string; link?: boolean }>(lock.packages)
  for (const { name } of packages) {
    const installed = resolved.filter(([path]) => path.endsWith(`node_modules/${name}`))
    expect(installed).toHaveLength(1)
    expect(installed[0]?.[1].resolved).toMatch(/^file:.*\.tgz$/)
    expect(installed[0]?.[1].link).toBeUndefined()
  }
})

test('every example in the READMEs is one that runs', async () => {
  const ofProject = ['project', join(import.meta.dirname, '../../../README.md')] as const
  const ofPackages = packages.map(
    ({ name }) => [name, join(folder, 'node_modules', name, 'README.md')] as const,
  )
  for (const [name, path] of [ofProject, ...ofPackages]) {
    const readme = await readFile(path, 'utf8')
    const examples = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code as string)
    expect(examples.length, `examples in the README of ${name}`).toBeGreaterThan(0)
    for (const [n, code] of examples.entries()) {
      const file = `readme-${name.replace('@plant-store/', '')}-${n}.ts`
      await writeFile(join(folder, file), code)
      // What an example says it prints is what it prints.
      const promised = [...code.matchAll(/\/\/ → (.*)$/gm)].map(([, line]) => line)
      const printed = await run(process.execPath, [file], folder)
      expect(printed.trimEnd().split('\n').filter(Boolean), `${file}\n${code}`).toEqual(promised)
    }
  }
})

test.concurrent.each(
  compilers.flatMap(([age, tsc]) =>
    [
      ['nodenext', 'nodenext'],
      ['esnext', 'bundler'],
    ].map(([module, resolution]) => ({ age, tsc, module, resolution })),
  ),
)(
  'the $age TypeScript finds nothing wrong, resolving as $resolution',
  { timeout: 300_000 },
  async ({ age, tsc, module, resolution }) => {
    const options = {
      ...strictOptions,
      module,
      moduleResolution: resolution,
      lib: [...strictOptions.lib, 'dom', 'dom.asynciterable'],
      types: ['node'],
      // The newest ones need a newer compiler.
      ...(age === 'oldest' && { typeRoots: ['types-oldest'] }),
      exactOptionalPropertyTypes: true,
      allowImportingTsExtensions: true,
      // Every declaration that is reached, ours and others', once with each compiler.
      skipLibCheck: resolution !== 'nodenext',
    }
    const files = (await readdir(folder)).filter(name => name.endsWith('.ts'))
    expect(files).toEqual(expect.arrayContaining(['nursery.test.ts', 'readme-client-0.ts']))
    expect(await compile(tsc, `${age}.${resolution}`, options, files)).toBe('')
  },
)

/** What does not show Node, and what it needs besides the language: http shows Fastify, and so Node. */
const withoutNode = {
  access: [],
  client: ['dom'],
  domain: [],
  'domain/testing': [],
  json: [],
  webhooks: ['dom'],
}

test.each(compilers)(
  'the %s TypeScript needs no more than es2022 for what does not show Node',
  async (age, tsc) => {
    await Promise.all(
      Object.entries(withoutNode).map(async ([name, more]) => {
        const lib = [...strictOptions.lib, ...more]
        const options = { ...strictOptions, lib, module: 'nodenext', types: [] }
        // One by one, as one that brings what it needs brings it for all.
        const file = `alone-${age}-${name.replace('/', '-')}`
        await writeFile(join(folder, `${file}.mts`), `export * from '@plant-store/${name}'\n`)
        expect(await compile(tsc, file, options, [`${file}.mts`]), name).toBe('')
      }),
    )
  },
)

test('the compilers do see what they check', async () => {
  await writeFile(
    join(folder, 'wrong.mts'),
    "import { parsePlantId } from '@plant-store/domain'\nexport const id: number = parsePlantId(1n)\n",
  )
  for (const [, tsc] of compilers) {
    const args = [tsc, '--noEmit', '--skipLibCheck', '--module', 'nodenext', 'wrong.mts']
    await expect(run(process.execPath, args, folder)).rejects.toThrow(/TS2322/)
  }
})

test('a service with copies of its own of the domain and of access gets the same answers', async () => {
  const service = join(folder, 'two-copies')
  for (const name of ['@plant-store/domain', '@plant-store/access']) {
    const copy = join(service, 'node_modules', name)
    await cp(join(folder, 'node_modules', name), copy, { recursive: true })
    const manifest = JSON.parse(await readFile(join(copy, 'package.json'), 'utf8'))
    await writeFile(join(copy, 'package.json'), JSON.stringify({ ...manifest, version: '1.0.1' }))
  }
  await cp(join(folder, 'two-copies.ts'), join(service, 'two-copies.ts'))
  expect(await run(process.execPath, ['two-copies.ts'], service)).toBe('200\n40003\n40402\n40102\n')
})

test.each(['contract.test.cjs', 'contract.test.mjs'])('the contract runs in Jest, as %s', async file => {
  const jest = [require.resolve('jest/bin/jest'), '--rootDir', folder, '--no-watchman', '--json']
  const args = ['--experimental-vm-modules', ...jest, '--testMatch', `**/${file}`]
  const { success, numPassedTests } = JSON.parse(await run(process.execPath, args, folder))
  expect(success).toBe(true)
  expect(numPassedTests).toBeGreaterThan(10)
})

test('the README of persistence shows the whole engine that the nursery has', async () => {
  const readme = await readFile(join(folder, 'node_modules/@plant-store/persistence/README.md'), 'utf8')
  expect(readme).toContain(await readFile(join(folder, 'node-sqlite.ts'), 'utf8'))
})
