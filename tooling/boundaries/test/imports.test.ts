import { importsOf } from '@plant-store/boundaries'
import { expect, test } from 'vitest'

const found = (source: string) => importsOf('a.ts', source).map(({ specifier, kind }) => [kind, specifier])

test.each([
  ["import a from 'x'", 'import'],
  ["import * as a from 'x'", 'import'],
  ["import { a, type B } from 'x'", 'import'],
  ["import 'x'", 'import'],
  ["import type { A } from 'x'", 'type'],
  ["import { type A } from 'x'", 'import'],
  ["export { a } from 'x'", 'export'],
  ["export type { A } from 'x'", 'type'],
  ["export * from 'x'", 'export-all'],
  ["export * as a from 'x'", 'export-all'],
  ["const a = await import('x')", 'dynamic'],
  ["function f() { return import('x').then(a => a.b) }", 'dynamic'],
  ["type A = import('x').B", 'type'],
  ["type A = typeof import('x')", 'type'],
  ["import a = require('x')", 'require'],
  ["const a = require('x')", 'require'],
  ["new Worker(new URL('x', import.meta.url))", 'load'],
])('finds what %s mentions', (source, kind) => {
  expect(found(source)).toEqual([[kind, 'x']])
})

test.each([
  "// import a from 'x'",
  "/* export * from 'x' */",
  'const a = "import b from \'x\'"',
  "const a = `import('x')`",
  "new URL('x', base)",
  "a.require('x')",
  "import.meta.resolve('x')",
  'export const a = 1',
  'export { a }; const a = 1',
])('takes %s for no import', source => {
  expect(found(source)).toEqual([])
})

test('tells the line of each, in order', () => {
  const source = "import a from 'a'\n\nimport {\n  b,\n} from 'b'\nexport const c = () => import('c')\n"
  expect(importsOf('a.ts', source).map(({ specifier, line }) => [specifier, line])).toEqual([
    ['a', 1],
    ['b', 3],
    ['c', 6],
  ])
})

test.each(['import(name)', 'import(`a/b`)', 'require(name)', 'new URL(name, import.meta.url)'])(
  'does not overlook %s, whose target is known only when it runs',
  source => {
    const [only, ...others] = importsOf('a.ts', source)
    expect(others).toEqual([])
    expect(only?.specifier).toBeUndefined()
  },
)

test('refuses what it can not parse', () => {
  expect(() => importsOf('a.ts', 'import from')).toThrow(/a\.ts can not be parsed/)
})
