import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  compileEntities,
  type Entity,
  postgresDialect,
  type ReadStatement,
  sqliteDialect,
} from '@plant-store/engine'
import { entities, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { plant, temporaryFolder } from './store-folder.ts'

test.each([sqliteDialect, postgresDialect])(
  'on $name every text of a page counts for its size',
  dialect => {
    const pages = Object.values<Entity>(entities).flatMap(({ rows, compile }) =>
      Object.entries(compile(dialect).statements).flatMap(([name, statement]) => {
        const { sql } = (statement as ReadStatement).bound?.guarded ?? statement
        const counted = [...sql.matchAll(/octet_length\("(\w+)"\)/g)].map(
          ([, column]) => column,
        )
        return rows !== null && counted.length > 0 && !name.startsWith('span')
          ? [{ sql, counted, columns: rows.columns }]
          : []
      }),
    )
    expect(pages.length).toBeGreaterThan(2)
    for (const { sql, counted, columns } of pages) {
      const texts = Object.entries(columns).flatMap(([name, type]) =>
        type === 'text' ? [name] : [],
      )
      expect(new Set(counted), sql).toEqual(new Set(texts))
    }
  },
)

/** Parameters of pages that no index is for. */
const ofEveryPage = ['from', 'limit', 'textBytesMax', 'countMax', 'to', 'name_contains']

test('on SQLite no page reads rows that it does not look at, and a filter has an index', async () => {
  const file = join(temporaryFolder(), 'store.db')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  using opened = new DisposableStack()
  const database = opened.adopt(new Database(file), each => void each.close())
  const pages = [...compileEntities(entities, sqliteDialect).names].filter(
    ([statement]) => (statement as ReadStatement).bound !== undefined,
  )
  expect(pages.length).toBeGreaterThan(1)
  for (const [{ sql, parameters }, name] of pages) {
    const values = parameters.map(() => 1)
    const plan = database
      .prepare<unknown[], { detail: string }>(`explain query plan ${sql}`)
      .all(values)
    const [search, ...others] = plan.map(({ detail }) => detail)
    const [filter] = parameters.filter(parameter => !ofEveryPage.includes(parameter))
    expect(search, name).toMatch(
      filter === undefined
        ? /^SEARCH /
        : new RegExp(`^SEARCH .* INDEX .*\\(${filter}=\\?`),
    )
    expect(others.join(), name).toMatch(
      /counted/.test(name)
        ? /^SCALAR SUBQUERY .*(SCAN|SEARCH) plants USING COVERING INDEX/
        : /^$/,
    )
  }
})

test('on SQLite a search measures names without reading them', async () => {
  const file = join(temporaryFolder(), 'store.db')
  {
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(1, 'x'.repeat(1_000_000), 'a'))
  }
  breakLongTexts(file)
  using opened = new DisposableStack()
  const database = opened.adopt(new Database(file), each => void each.close())
  const spans = [...compileEntities(entities, sqliteDialect).names].filter(([, name]) =>
    name.startsWith('plants.span'),
  )
  for (const [{ sql, parameters }, name] of spans) {
    const given = { from: 0, limit: 10, tag: 'a' }
    const values = parameters.map(parameter => given[parameter as keyof typeof given])
    const window = database.prepare(sql).get(values)
    expect(window, name).toEqual({ last: 1, count: 1, bytes: 1_000_000 })
  }
  expect(spans).toHaveLength(2)
  expect(() => database.prepare('select name from plants').all()).toThrow('malformed')
})

/** Breaks every page that holds the rest of a long text, so that reading the text fails. */
function breakLongTexts(file: string): void {
  const pageBytes = 4096
  const bytes = readFileSync(file)
  for (let at = 0; at < bytes.length; at += pageBytes) {
    const page = bytes.subarray(at, at + pageBytes)
    const isRestOfText = page.subarray(4, 2_000).every(byte => byte === 0x78)
    if (isRestOfText) {
      // Its first bytes are the number of the next page.
      page.writeUInt32BE(0xffffffff, 0)
    }
  }
  writeFileSync(file, bytes)
}
