import { importsOf, type Manifest, type Package, rootViolations, violations } from '@plant-store/boundaries'
import { describe, expect, test } from 'vitest'

const entry = (path: string) => ({ types: `./dist/${path}.d.ts`, default: `./dist/${path}.js` })
const doors = { '.': entry('index') }
const doorsAndTesting = { ...doors, './testing': entry('testing/index') }

/** A package as it would be read from disk, from the text of its files. */
function sample(
  folder: string,
  files: Record<string, string>,
  manifest: Omit<Manifest, 'name'> = { exports: doors },
): Package {
  const name = `@plant-store/${folder.split('/')[1]}`
  return {
    name,
    folder,
    manifest: { name, ...manifest },
    files: Object.entries({ [manifest.exports ? 'src/index.ts' : 'src/main.ts']: '', ...files }).map(
      ([path, source]) => ({
        path,
        imports: importsOf(path, source),
      }),
    ),
  }
}

const domain = sample('packages/domain', { 'src/testing/index.ts': '' }, { exports: doorsAndTesting })
const access = sample('packages/access', {})
const persistence = sample('packages/persistence', {})
const json = sample('packages/json', {})
const api = sample('apps/api', {}, {})
const tool = sample('tooling/contract', {})
const others = [domain, access, persistence, json, api, tool]

const workspace = (...names: string[]) =>
  Object.fromEntries(names.map(name => [`@plant-store/${name}`, 'workspace:*']))
const check = (each: Package) => violations(each, [each, ...others.filter(({ name }) => name !== each.name)])
/** The one complaint about a package with these files. */
function complaint(...given: Parameters<typeof sample>): string {
  const found = check(sample(...given))
  expect(found.length, found.join('\n')).toBe(1)
  return found[0] as string
}

test('what keeps the rules is left alone', () => {
  for (const each of others) expect(check(each)).toEqual([])
  expect(
    check(
      sample(
        'packages/http',
        {
          'src/index.ts':
            "import { a } from './deep/a.ts'\nimport type { B } from '@plant-store/domain'\nimport 'node:fs'",
          'src/deep/a.ts': "import { c } from '../index.ts'\nimport 'fastify'\nimport '@fastify/swagger'",
          'test/a.test.ts':
            "import '@plant-store/http'\nimport '@plant-store/domain/testing'\nimport '@plant-store/contract'\nimport 'vitest'\nimport './b.ts'\nnew URL('b.ts', import.meta.url)",
        },
        {
          exports: doors,
          dependencies: { ...workspace('domain'), fastify: '5', '@fastify/swagger': '9' },
          devDependencies: { ...workspace('contract'), vitest: '5' },
        },
      ),
    ),
  ).toEqual([])
})

describe('a forbidden import is caught:', () => {
  test.each([
    ['the domain imports Node', 'domain', "import 'node:fs'", {}],
    ['the domain imports a type of Node', 'domain', "import type { Server } from 'node:http'", {}],
    ['the domain imports a library', 'domain', "import 'typebox'", { typebox: '1' }],
    ['the domain imports another package', 'domain', "import '@plant-store/json'", workspace('json')],
    ['access imports more of Node than crypto', 'access', "import 'node:fs'", {}],
    ['access imports the domain', 'access', "import '@plant-store/domain'", workspace('domain')],
    ['json imports anything', 'json', "import 'node:util'", {}],
    ['http imports persistence', 'http', "import '@plant-store/persistence'", workspace('persistence')],
    [
      'http imports a type of persistence',
      'http',
      "type A = import('@plant-store/persistence').Storage",
      workspace('persistence'),
    ],
    [
      'http imports persistence when it is needed',
      'http',
      "export const a = () => import('@plant-store/persistence')",
      workspace('persistence'),
    ],
    ['http imports a database', 'http', "import 'better-sqlite3'", { 'better-sqlite3': '13' }],
    [
      'http imports what only begins like an allowed one',
      'http',
      "import 'fastify-other'",
      { 'fastify-other': '1' },
    ],
    ['persistence imports a web framework', 'persistence', "import 'fastify'", { fastify: '5' }],
    ['persistence passes http on', 'persistence', "export { a } from '@plant-store/http'", workspace('http')],
  ])('%s', (_, name, source, dependencies) => {
    const http = sample('packages/http', {})
    const each = sample(`packages/${name}`, { 'src/a.ts': source }, { exports: doors, dependencies })
    const found = violations(
      each,
      [each, http, ...others].filter(
        (other, at, all) => all.findIndex(({ name }) => name === other.name) === at,
      ),
    )
    expect(found).toEqual([
      expect.stringMatching(new RegExp(`^packages/${name}/src/a\\.ts:1 may not import `)),
    ])
  })

  test('a package imports a program or a tool', () => {
    for (const name of ['api', 'contract']) {
      const exporting = {
        ...(name === 'api' ? api : tool),
        manifest: { name: `@plant-store/${name}`, exports: doors },
      }
      const each = sample(
        'packages/http',
        { 'src/a.ts': `import '@plant-store/${name}'` },
        { exports: doors, dependencies: workspace(name) },
      )
      expect(violations(each, [each, exporting])).toEqual([expect.stringContaining('is a program or a tool')])
    }
  })

  test('a program imports a program', () => {
    const exporting = { ...api, manifest: { name: api.name, exports: doors } }
    const each = sample(
      'apps/cli',
      { 'src/a.ts': "import '@plant-store/api'" },
      { dependencies: workspace('api') },
    )
    expect(violations(each, [each, exporting])).toEqual([expect.stringContaining('is a program or a tool')])
  })

  test('what ships imports what is for tests', () => {
    expect(
      complaint(
        'packages/http',
        { 'src/a.ts': "import '@plant-store/domain/testing'" },
        { exports: doors, dependencies: workspace('domain') },
      ),
    ).toContain('ships with @plant-store/domain/testing')
  })

  test('only testing may use assertions', () => {
    const source = "import assert from 'node:assert/strict'"
    expect(
      check(sample('packages/domain', { 'src/testing/index.ts': source }, { exports: doorsAndTesting })),
    ).toEqual([])
    expect(complaint('packages/domain', { 'src/a.ts': source })).toContain(
      'may not import node:assert/strict',
    )
  })

  test('what can not be known before it runs', () => {
    expect(
      complaint('packages/http', { 'src/a.ts': 'export const load = (name: string) => import(name)' }),
    ).toContain("can't be known")
  })
})

describe('there is one door to a package:', () => {
  test.each([
    '@plant-store/domain/dist/plant.js',
    '@plant-store/domain/src/plant.ts',
    '@plant-store/domain/package.json',
    '@plant-store/domain/testing/memory.js',
    '@plant-store/access/testing',
  ])('%s is none', specifier => {
    const dependencies = workspace('domain', 'access')
    for (const path of ['src/a.ts', 'test/a.test.ts']) {
      const each = sample(
        'packages/http',
        {
          [path]: `import '${specifier}'`,
          'src/b.ts': "import '@plant-store/domain'\nimport '@plant-store/access'",
        },
        { exports: doors, dependencies },
      )
      expect(check(each)).toEqual([expect.stringContaining('which it does not export')])
    }
  })

  test('a package that is not there has none', () => {
    expect(complaint('packages/http', { 'src/a.ts': "import '@plant-store/seeds'" })).toContain(
      'no package here',
    )
  })

  test.each([
    ['src/a.ts', '../../domain/src/index.ts'],
    ['src/a.ts', '../test/b.ts'],
    ['src/a.ts', '../dist/b.js'],
    ['src/deep/a.ts', '../../../domain/dist/index.js'],
    ['test/a.test.ts', '../src/index.ts'],
    ['test/a.test.ts', '../../domain/test/b.ts'],
  ])('%s does not go round it by %s', (path, specifier) => {
    for (const source of [`import '${specifier}'`, `new URL('${specifier}', import.meta.url)`]) {
      expect(complaint('packages/http', { [path]: source })).toMatch(/reaches from (src|test) to /)
    }
  })

  test('a test may start what is built', () => {
    expect(
      check(sample('apps/api', { 'test/a.test.ts': "new URL('../dist/main.js', import.meta.url)" }, {})),
    ).toEqual([])
  })
})

describe('what is imported is declared, and what is declared is imported:', () => {
  test('a source needs a dependency, not one for development', () => {
    expect(
      complaint(
        'packages/http',
        { 'src/a.ts': "import 'fastify'" },
        { exports: doors, devDependencies: { fastify: '5' } },
      ),
    ).toContain('imports fastify, which its package.json does not declare')
  })

  test('a test needs any', () => {
    const files = { 'test/a.test.ts': "import 'vitest'" }
    expect(complaint('packages/http', files)).toContain(
      'imports vitest, which its package.json does not declare',
    )
    expect(
      check(sample('packages/http', files, { exports: doors, devDependencies: { vitest: '5' } })),
    ).toEqual([])
  })

  test('a dependency that nobody imports is a leftover, also when a test does', () => {
    expect(
      complaint(
        'packages/http',
        { 'test/a.test.ts': "import 'fastify'" },
        { exports: doors, dependencies: { fastify: '5' } },
      ),
    ).toContain('depends on fastify and never imports it')
  })

  test('nothing is declared at the root for everybody', () => {
    expect(rootViolations({ name: 'root', devDependencies: { turbo: '2' } })).toEqual([])
    expect(rootViolations({ name: 'root', dependencies: { kysely: '0' } })).toEqual([
      'package.json has the runtime dependency kysely',
    ])
  })
})

describe('names leave a package one by one:', () => {
  test('no source exports all of another', () => {
    expect(
      complaint('packages/domain', { 'src/index.ts': "export * from './a.ts'", 'src/a.ts': '' }),
    ).toContain('packages/domain/src/index.ts:1 exports all of ./a.ts')
  })

  test('no folder has an index that nobody enters by', () => {
    expect(complaint('packages/domain', { 'src/plants/index.ts': '' })).toContain(
      'src/plants/index.ts is an index that no one enters by',
    )
  })

  test('every entry is there', () => {
    expect(complaint('packages/domain', {}, { exports: doorsAndTesting })).toContain(
      'exports src/testing/index.ts, which is not there',
    )
  })
})
