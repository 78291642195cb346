import { sqliteDialect } from '@plant-store/engine'
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Row, readRows } from '../src/statements/read-rows.ts'
import { createTable, int64Min, type Note, note, statementsOf } from './notes.ts'

describe('a page on SQLite', () => {
  const database = new Database(':memory:').defaultSafeIntegers()
  const { page } = statementsOf('notes', sqliteDialect)
  const limit = 3
  /** The share of each of two texts. */
  const share = 10
  const textBytesMax = limit * 2 * share
  beforeAll(async () => {
    await createTable('notes')(
      new Kysely({ dialect: new SqliteDialect({ database }) }),
      sqliteDialect,
    )
    return () => database.close()
  })
  beforeEach(() => void database.exec('delete from notes'))

  function readCounted(
    notes: readonly Note[],
    given: { limit: number; textBytesMax: number },
  ) {
    const insert = database.prepare('insert into notes values (?, ?, ?)')
    for (const { id, text, topic } of notes) {
      insert.run(id, text, topic)
    }
    let rowsOneByOne = 0
    const rows = readRows(page, { ...given, from: int64Min }, ({ sql }) => {
      const statement = database.prepare<[readonly unknown[]], Row>(sql)
      return {
        all: values => statement.all(values),
        *iterate(values) {
          for (const row of statement.iterate(values)) {
            rowsOneByOne++
            yield row
          }
        },
      }
    })
    return { rows, rowsOneByOne }
  }

  test.each([
    ['just as long as its share in UTF-8', 'é'.repeat(share / 2), null, 0],
    ['a byte longer in UTF-8', `${'é'.repeat(share / 2)}x`, null, 3],
    ['a byte longer in another column', '', 'x'.repeat(share + 1), 3],
    ['empty', '', '', 0],
    // A text that reads 0 is not the number that stands for a long text.
    ['0', '0', '0', 0],
  ])(
    'with a text that is %s reads rows one by one only if it must',
    (_, text, topic, expected) => {
      const odd = note(1, text, topic)
      const notes = [odd, note(2, '', null), note(3, 'a', 'b')]
      const { rows, rowsOneByOne } = readCounted(notes, { limit, textBytesMax })
      expect(rows).toEqual(notes)
      expect(rowsOneByOne).toBe(expected)
    },
  )

  test('with many long texts reads no more of them than it shows', () => {
    const notes = Array.from({ length: limit }, (_, n) =>
      note(n, 'x'.repeat(textBytesMax)),
    )
    expect(readCounted(notes, { limit, textBytesMax })).toEqual({
      rows: [notes[0]],
      rowsOneByOne: 1,
    })
  })
})
