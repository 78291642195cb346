import { sqliteDialect } from '@plant-store/engine'
import { createTestSchema, temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readRows } from '../src/statements/read-rows.ts'
import {
  createTable,
  int64Min,
  type Note,
  note,
  openStorage,
  statementsOf,
} from './notes.ts'

const bytesOf = ({ text, topic }: Note) =>
  Buffer.byteLength(text) + Buffer.byteLength(topic ?? '')

/** The rows of a page by definition: up to the one at which the texts reach the size. */
function within(
  notes: readonly Note[],
  limit: number,
  textBytesMax: number,
): readonly Note[] {
  let bytes = 0
  const last = notes.findIndex((row, index) => {
    bytes += bytesOf(row)
    return bytes >= textBytesMax || index + 1 === limit
  })
  return last === -1 ? notes : notes.slice(0, last + 1)
}

/** Empty texts, texts without a topic, and characters of one, two and four bytes. */
const notes = [
  note(int64Min, ''),
  note(1, 'abcde', ''),
  note(2, 'ééé', 'abcdé'),
  note(3, '', '🌱'),
  note(4, '0', null),
  note(5, ''),
  note(2n ** 63n - 1n, 'abcdefghijk', 'a'),
]

describe.each(['SQLite', 'PostgreSQL'])('on %s', name => {
  test('a page ends with the row at which its texts reach the size', async () => {
    await using schema = await createTestSchema()
    const url = name === 'SQLite' ? `file:${temporaryFolder()}/notes.db` : schema.url
    await using storage = await openStorage({ url })
    await storage.notes.insertAll(notes)
    const most = notes.reduce((sum, each) => sum + bytesOf(each), 1)
    for (const limit of [1, 2, 5, notes.length, notes.length + 1]) {
      for (
        let textBytesMax = 1;
        textBytesMax <= limit * 2 * most;
        textBytesMax += 1 + (textBytesMax >> 3)
      ) {
        expect(
          await storage.notes.page(limit, textBytesMax),
          `${limit} notes, ${textBytesMax} bytes`,
        ).toEqual(within(notes, limit, textBytesMax))
      }
    }
  })
})

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
      const statement = database.prepare<[readonly unknown[]]>(sql)
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
    ['just as long as its share', 'x'.repeat(share), null, 0],
    ['a byte longer', 'x'.repeat(share + 1), null, 3],
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
