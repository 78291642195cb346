import {
  type ChangeStatement,
  compileEntities,
  type Dialect,
  type PageColumns,
  type PageGiven,
  type Parameters,
  postgresDialect,
  type ReadStatement,
  sqliteDialect,
  valuesOf,
} from '@plant-store/engine'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { entities, type Note, statementsOf, type Tables } from './notes.ts'

const dialects = [sqliteDialect, postgresDialect]

test('values are in the order of the placeholders, also those of a parameter that has several', () => {
  for (const dialect of dialects) {
    const db = dialect.tables<Tables>()
    const statement = dialect.change(
      { of: 'notes', by: 'id' },
      (p: Parameters<Pick<Note, 'id' | 'text'>>) =>
        db
          .updateTable('notes')
          .set({ text: p.text })
          .where('id', '=', p.id)
          .where(({ or, eb }) =>
            or([eb('text', '<', p.text), eb('topic', '=', sql.lit('no parameter'))]),
          ),
    )
    expect(statement.sql.match(/\?|\$\d/g)).toHaveLength(3)
    expect(valuesOf(statement, { id: 1n, text: 'a' })).toEqual(['a', 1n, 'a'])
    expect(valuesOf(statementsOf('notes', dialect).clear, {})).toEqual([])
  }
})

test('a page may have no text, which SQLite reads whole and PostgreSQL adds up to 0', () => {
  const [onSqlite, onPostgres] = dialects.map(dialect =>
    dialect.page(
      { id: 'bigint' },
      (p: Parameters<PageGiven>, columns: PageColumns<Pick<Note, 'id'>>) =>
        dialect
          .tables<Tables>()
          .selectFrom('notes')
          .select(columns)
          .orderBy('id')
          .limit(p.limit),
    ),
  )
  expect(onSqlite?.bound?.texts).toEqual([])
  expect(onPostgres?.sql).toContain('sum(0) over')
})

test('a constant that is no parameter and no literal is refused, as nobody would give its value', () => {
  for (const dialect of dialects) {
    const db = dialect.tables<Tables>()
    expect(() =>
      dialect.read(() => db.selectFrom('notes').select('id').where('text', '=', 'a')),
    ).toThrow(/^a constant must be written with sql.lit: a in select /)
  }
})

test('each statement has the name of its entity and its own', () => {
  const names = [...compileEntities(entities, sqliteDialect).names.values()]
  const ofEach = ['find', 'page', 'insert', 'save', 'remove', 'clear']
  expect(names).toEqual([
    ...['notes', 'gardens'].flatMap(entity => ofEach.map(name => `${entity}.${name}`)),
    'store.probeRead',
    'store.probeWrite',
  ])
})

describe('changes that a database would make in no order are refused before any is made:', () => {
  const compiled = (
    statementsOn: (dialect: Dialect) => Record<string, ReadStatement | ChangeStatement>,
  ) =>
    compileEntities(
      {
        ...entities,
        notes: {
          ...entities.notes,
          compile: dialect => ({ statements: statementsOn(dialect), port }),
        },
      },
      postgresDialect,
    )
  const port = () => ({})
  const rename = (p: Parameters<{ id: bigint; text: string }>) =>
    sql`update notes set text = ${p.text} where id = ${p.id}`
  const byId = { of: 'notes', by: 'id' } as const

  test.each<
    [
      string,
      (dialect: Dialect) => Record<string, ReadStatement | ChangeStatement>,
      string,
    ]
  >([
    [
      'by a table that is misspelt',
      dialect => ({ rename: dialect.change({ of: 'nots', by: 'id' }, rename) }),
      'notes.rename is in the order of nots, which is no table of notes',
    ],
    [
      'by a table of another entity',
      dialect => ({ rename: dialect.change({ of: 'gardens', by: 'id' }, rename) }),
      'notes.rename is in the order of gardens, which is no table of notes',
    ],
    [
      'by a parameter that the SQL does not have',
      dialect => ({
        all: dialect.change(
          byId,
          (p: Parameters<{ id: bigint; text: string }>) =>
            sql`update notes set text = ${p.text}`,
        ),
      }),
      'notes.all is ordered by id, which is no parameter of its SQL',
    ],
    [
      'of one table by two columns',
      dialect => ({
        one: dialect.change(byId, rename),
        other: dialect.change({ of: 'notes', by: 'text' }, rename),
      }),
      'notes.other is ordered by text, and others of notes by id',
    ],
  ])('%s', (_, statementsOn, message) => {
    expect(() => compiled(statementsOn)).toThrow(message)
  })
})

test('what precedes an insert has its parameters in their order, and is on SQLite alone', () => {
  const preceded = (dialect: Dialect, names: readonly (keyof Note)[]) =>
    statementsOf('notes', dialect, {
      sqlite: {
        onlyIf: sql`select 1 from gardens`,
        statement: p =>
          sql`insert into gardens select ${sql.join(names.map(name => p[name]))}`,
      },
      postgres: insert =>
        sql`with inserted as (${insert} returning id) select id from inserted`,
    }).insert
  const { alsoInserts } = preceded(sqliteDialect, ['id', 'text', 'topic'])
  expect(alsoInserts).toEqual({
    onlyIf: 'select 1 from gardens',
    sql: 'insert into gardens select ?, ?, ?',
  })
  expect(() => preceded(sqliteDialect, ['text', 'id', 'topic'])).toThrow(
    'it has not the parameters id,text,topic of what it precedes',
  )
  expect(preceded(postgresDialect, [])).not.toHaveProperty('alsoInserts')
})
