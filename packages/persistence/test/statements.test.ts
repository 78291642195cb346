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
import { temporaryFolder } from './store-folder.ts'

test.each([sqliteDialect, postgresDialect])(
  'on $name every text of a page counts for its size',
  dialect => {
    const pages = Object.values<Entity>(entities).flatMap(({ rows, compile }) =>
      Object.values(compile(dialect).statements).flatMap(statement => {
        const { sql } = (statement as ReadStatement).bound?.guarded ?? statement
        const counted = [...sql.matchAll(/octet_length\("(\w+)"\)/g)].map(
          ([, column]) => column,
        )
        return rows !== null && counted.length > 0
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
