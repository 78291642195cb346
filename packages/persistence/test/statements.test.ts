import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type ChangeStatement,
  compileEntities,
  type Dialect,
  postgresDialect,
  type ReadStatement,
  sqliteDialect,
} from '@plant-store/engine'
import { entities, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { plantColumns } from '../src/plants/tables.ts'
import { plant, temporaryFolder } from './store-folder.ts'

interface Named {
  readonly name: string
  readonly statement: ReadStatement | ChangeStatement
}

function statementsOn(dialect: Dialect): readonly Named[] {
  const { names, changeStatements } = compileEntities(entities, dialect)
  return [...names].map(([statement, name]) => ({
    name,
    statement: changeStatements.get(name) ?? (statement as ReadStatement),
  }))
}

/** Returns a statement with all that the database gets for it. */
function written({ name, statement }: Named): string {
  const parameters = statement.parameters.join(', ')
  const lines = [`-- ${name} (${parameters})`]
  if (statement.kind === 'read' && statement.bound !== undefined) {
    lines.push(statement.bound.guarded.sql, '-- or, if a text was 0')
  }
  if (statement.kind === 'change' && statement.before !== undefined) {
    lines.push(statement.before.onlyIf, '-- if it returns a row, first')
    lines.push(statement.before.sql, '-- then')
  }
  return [...lines, statement.sql, ''].join('\n')
}

test.each([sqliteDialect, postgresDialect])(
  'on $name the statements are those that were tested',
  async dialect => {
    const all = statementsOn(dialect).map(written)

    await expect(all.join('\n')).toMatchFileSnapshot(
      `statements-${dialect.name}.snapshot`,
    )
  },
)

const texts = Object.entries(plantColumns).flatMap(([name, type]) =>
  type === 'text' ? [name] : [],
)

test.each([sqliteDialect, postgresDialect])(
  'on $name every text of a page counts for its size',
  dialect => {
    const pages = statementsOn(dialect).flatMap(({ name, statement }) => {
      const isGuarded = statement.kind === 'read' && statement.bound !== undefined
      const { sql, parameters } = isGuarded ? statement.bound.guarded : statement
      return parameters.includes('textBytesMax') ? [{ name, sql }] : []
    })

    const withoutText = pages.flatMap(({ name, sql }) =>
      texts.every(text => sql.includes(`octet_length(${text})`)) ? [] : [name],
    )

    expect(pages.length).toBeGreaterThan(2)
    expect(withoutText).toEqual([])
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
  const windows = [...compileEntities(entities, sqliteDialect).names].filter(([, name]) =>
    name.startsWith('plants.window'),
  )
  for (const [{ sql, parameters }, name] of windows) {
    const given = { from: 0, limit: 10, tag: 'a' }
    const values = parameters.map(parameter => given[parameter as keyof typeof given])
    const window = database.prepare(sql).get(values)
    expect(window, name).toEqual({ last: 1, count: 1, bytes: 1_000_000 })
  }
  expect(windows).toHaveLength(2)
  expect(() => database.prepare('select name from plants').all()).toThrow('malformed')
})

/**
 * Breaks every page that holds the rest of a long text, so that reading the text fails.
 */
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
