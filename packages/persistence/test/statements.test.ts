import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parsePlantListQuery } from '@plant-store/domain'
import {
  type ChangeStatement,
  compileEntities,
  type Dialect,
  postgresDialect,
  type ReadStatement,
  sqliteDialect,
} from '@plant-store/engine'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { entities, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { assert, describe, expect, onTestFinished, test } from 'vitest'
import { boundsOf } from '../src/plants/statements.ts'
import { plant } from './places.ts'

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
  if (statement.kind === 'change') {
    lines.push(...change(statement))
    if (statement.otherwise !== undefined) {
      lines.push('-- or, if it changed nothing', ...change(statement.otherwise))
    }
  } else {
    lines.push(statement.sql)
  }
  return [...lines, ''].join('\n')
}

function change({ preceding, sql }: Pick<ChangeStatement, 'preceding' | 'sql'>) {
  if (preceding === undefined) {
    return [sql]
  }
  return [
    preceding.onlyIf,
    '-- if it returns a row, first',
    preceding.sql,
    '-- then',
    sql,
  ]
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

test.each([sqliteDialect, postgresDialect])(
  'on $name all changes of a table have one order of locks',
  dialect => {
    const columns = new Map<string, string>()
    const { changeStatements } = compileEntities(entities, dialect)
    const ordered = [...changeStatements].flatMap(([name, { order, parameters }]) =>
      order === 'barrier' ? [] : [{ name, order, parameters }],
    )
    for (const { name, order, parameters } of ordered) {
      const { of: table, by } = order
      const entity = name.split('.')[0] as keyof typeof entities
      expect(entities[entity].tables, name).toContain(table)
      expect(parameters, name).toContain(by)
      expect(columns.get(table) ?? by, name).toBe(by)
      columns.set(table, by)
    }
    expect([...columns.keys()].sort()).toEqual(['access_tokens', 'plants'])
  },
)

describe('on SQLite', () => {
  /** Opens the file of a store with one plant, whose name has this many bytes. */
  async function openFile(nameBytes: number): Promise<Database.Database> {
    const file = join(temporaryFolder(), 'store.db')
    {
      await using storage = await openStorage({ url: `file:${file}` })
      await storage.plants.insert(plant(1, 'a', 'a'))
    }
    const store = new Database(file)
    store.exec(`update plants set name = '${'x'.repeat(nameBytes)}'`).close()
    breakLongTexts(file)
    const database = new Database(file)
    onTestFinished(() => {
      database.close()
    })
    return database
  }

  function planOf(database: Database.Database, name: string): string[] {
    const { sql, parameters } = statementNamed(name)
    const steps = database
      .prepare<unknown[], { detail: string }>(`explain query plan ${sql}`)
      .all(parameters.map(() => 1))
    return steps.map(({ detail }) => detail)
  }

  const byId = /^SEARCH plants USING INTEGER PRIMARY KEY \(rowid>\?/
  const byTag = /^SEARCH plants USING INDEX plants_by_tag \(tag=\? AND id>\?/
  // A count reads an index alone, or the part of the table where it ends.
  const countedAlone =
    /^SCALAR SUBQUERY .*(SCAN|SEARCH) plants USING (COVERING INDEX|INTEGER PRIMARY KEY)/

  test('no page reads a row that it does not look at', async () => {
    const database = await openFile(1)
    const expected = [
      { name: 'plants.counted', search: byId, others: countedAlone },
      { name: 'plants.countedOfTag', search: byTag, others: countedAlone },
      { name: 'plants.page', search: byId, others: /^$/ },
      { name: 'plants.pageOfTag', search: byTag, others: /^$/ },
      { name: 'plants.search', search: byId, others: /^$/ },
      { name: 'plants.searchOfTag', search: byTag, others: /^$/ },
    ]
    const pages = statementsOn(sqliteDialect).filter(
      ({ statement }) => statement.kind === 'read' && statement.bound !== undefined,
    )

    for (const { name, search, others } of expected) {
      const [first, ...rest] = planOf(database, name)
      expect(first, name).toMatch(search)
      expect(rest.join(), name).toMatch(others)
    }
    const names = pages.map(({ name }) => name).toSorted()
    expect(names).toEqual(expected.map(({ name }) => name))
  })

  test.each(['plants.window', 'plants.windowOfTag'])(
    '%s measures names without reading them',
    async name => {
      const database = await openFile(1_000_000)
      const { sql, parameters } = statementNamed(name)
      const values = new Map(Object.entries(boundsOf(parsePlantListQuery({ tag: 'a' }))))

      const window = database.prepare(sql).get(parameters.map(each => values.get(each)))

      expect(window).toEqual({ last: 1, count: 1, bytes: 1_000_000 })
      const readName = () => database.prepare('select name from plants').all()
      expect(readName).toThrow('malformed')
    },
  )
})

function statementNamed(name: string): ReadStatement | ChangeStatement {
  const found = statementsOn(sqliteDialect).find(each => each.name === name)
  assert(found, `there is a statement ${name}`)
  return found.statement
}

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
