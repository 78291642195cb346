import { join } from 'node:path'
import { compileEntities, type Entity, type Page, postgresDialect, sqliteDialect } from '@plant-store/engine'
import { entities, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { temporaryFolder } from './store-folder.ts'

test.each([sqliteDialect, postgresDialect])(
  'on $name the columns of a plant may have any name, as each is quoted',
  dialect => {
    const { names } = compileEntities(entities, dialect)
    const ofPlants = [...names.keys()]
      .map(({ sql }) => sql)
      .filter(sql => /\b(plants|outbox)\b/.test(sql) && /\bname\b/.test(sql))
    expect(ofPlants.length).toBeGreaterThan(6)
    for (const sql of ofPlants) expect(sql).not.toMatch(/(?<!")\bname\b/)
  },
)

test.each([sqliteDialect, postgresDialect])('on $name every text of a page counts for its size', dialect => {
  const pages = Object.values<Entity>(entities).flatMap(({ rows, on }) =>
    Object.values(on(dialect).statements).flatMap(statement =>
      statement.kind === 'page' ? [{ ...(statement as Page), columns: rows?.columns ?? {} }] : [],
    ),
  )
  expect(pages.length).toBeGreaterThan(1)
  for (const { sql, texts, columns } of pages) {
    const all = Object.entries(columns).flatMap(([name, type]) => (type === 'text' ? [name] : []))
    expect(new Set(texts), sql).toEqual(new Set(all))
  }
})

test('on SQLite no page reads rows that it does not return', async () => {
  const file = join(temporaryFolder(), 'store.db')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  using opened = new DisposableStack()
  const database = opened.adopt(new Database(file), each => void each.close())
  const pages = [...compileEntities(entities, sqliteDialect).names].filter(([{ kind }]) => kind === 'page')
  for (const [{ sql, parameters }, name] of pages) {
    const values = parameters.map(() => 1)
    const plan = database.prepare<unknown[], { detail: string }>(`explain query plan ${sql}`).all(values)
    expect(plan, name).toMatchObject([{ detail: expect.stringMatching(/^SEARCH /) }])
  }
})
