import { createTestDatabase } from '@plant-store/harness/vitest'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { limitWarnings } from '../src/postgres/server-warnings.ts'
import { attachStorage, note, openStorage } from './notes.ts'

const database = await createTestDatabase()
beforeAll(async () => {
  await using storage = await openStorage({ url: database.url })
  await storage.check()
  await database.query(`
    create function warn() returns trigger language plpgsql as $$ begin
      raise notice 'no warning';
      raise warning 'database must be vacuumed within % transactions', 1000 - new.id;
      return new;
    end $$;
    create trigger warn before insert on notes for each row execute function warn()`)
})
afterAll(() => database[Symbol.asyncDispose]())

/** Returns what a listener hears, and the listener. */
function hear() {
  const warnings: string[] = []
  return { warnings, onServerWarning: (warning: string) => void warnings.push(warning) }
}

test('a change with a warning succeeds, and its warning is reported once', async () => {
  const { warnings, onServerWarning } = hear()
  await using storage = await openStorage({ url: database.url, onServerWarning })

  const single = await storage.notes.insert(note(1))
  const several = await storage.notes.insertAll([note(2), note(3)])

  expect([single, ...several]).toEqual([true, true, true])
  expect(warnings).toEqual(['database must be vacuumed within 999 transactions'])
})

test('each thread reports the warnings and commits of its own changes', async () => {
  const { warnings, onServerWarning } = hear()
  const onCommit = vi.fn()
  await using storage = await openStorage({ url: database.url })
  await using attached = await attachStorage(storage.share(), {
    onServerWarning,
    onCommit,
  })

  await storage.notes.insert(note(4))
  await attached.notes.insert(note(5))
  // PostgreSQL stores no U+0000.
  await expect(attached.notes.insert(note(6, '\0'))).rejects.toThrow()

  expect(warnings).toEqual(['database must be vacuumed within 995 transactions'])
  expect(onCommit.mock.calls).toEqual([[{ changes: 1, ms: expect.any(Number) }]])
})

test('a warning that the server gives while it lets a client in is reported', async () => {
  await using own = await createTestDatabase()
  await own.query(
    `update pg_database set datcollversion = '0' where datname = current_database()`,
  )
  const opening = hear()
  const attaching = hear()

  await using storage = await openStorage({ url: own.url, ...opening })
  await using attached = await attachStorage(storage.share(), attaching)
  await attached.check()

  const mismatch = `database "${own.name}" has a collation version mismatch`
  expect(opening.warnings).toEqual([mismatch])
  expect(attaching.warnings).toEqual([mismatch])
})

test('warnings of each kind pass once a minute', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const { warnings, onServerWarning } = hear()
  const warn = limitWarnings(onServerWarning)

  warn('39 transactions are left', 'GetNewTransactionId')
  warn('38 transactions are left', 'GetNewTransactionId')
  warn('the collation has changed', 'check_collation')
  vi.advanceTimersByTime(59_999)
  warn('37 transactions are left', 'GetNewTransactionId')
  vi.advanceTimersByTime(1)
  warn('36 transactions are left', 'GetNewTransactionId')

  expect(warnings).toEqual([
    '39 transactions are left',
    'the collation has changed',
    '36 transactions are left',
  ])
})
