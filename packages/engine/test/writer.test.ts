import { on } from 'node:events'
import { mkdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import {
  type Change,
  type ChangeStatement,
  compileEntities,
  sqliteDialect,
} from '@plant-store/engine'
import { temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { ChangeKind } from '../src/sqlite/arrivals.ts'
import { longPages } from '../src/sqlite/checkpointer.ts'
import { openWriterConnection } from '../src/sqlite/connection.ts'
import { Writer } from '../src/sqlite/writer.ts'
import { valuesOf } from '../src/statements/statement.ts'
import { failStatements, spyOnFs } from './failing-disk.ts'
import { entities, note } from './notes.ts'
import { createStore } from './places.ts'

/**
 * A writer in this thread, and the far ends of two threads that send to it.
 *
 * @param pageBytes small by default, because the limits of a WAL count pages
 * @param prepare prepares the connection for a test
 */
async function open(
  pageBytes = 512,
  prepare: (connection: Database.Database) => void = () => {},
) {
  const file = join(temporaryFolder(), 'data/notes.db')
  mkdirSync(dirname(file))
  new Database(file).exec(`pragma page_size = ${pageBytes}; vacuum`).close()
  await createStore(`file:${file}`)
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const connection = openWriterConnection(file, 5_000)
  prepare(connection)
  const writer = new Writer(connection, {
    changeStatements,
    lockTimeoutMs: 0,
    walBytesMax: longPages * pageBytes,
  })
  onTestFinished(() => writer.close())
  const connect = (kind: ChangeKind) => {
    const { port1: port, port2 } = new MessageChannel()
    writer.connect(port2, kind)
    const answers = on(port, 'message')
    return {
      send(...ids: number[]) {
        port.postMessage(ids.map(id => insertOf(id)))
      },
      sendChanges: (changes: readonly Change[]) => port.postMessage(changes),
      answer: async () => (await answers.next()).value?.[0],
      answerSoFar: () => receiveMessageOnPort(port)?.message,
    }
  }
  return {
    file,
    connection,
    connect,
    one: connect('single'),
    other: connect('single'),
  }
}

const compiled = compileEntities(entities, sqliteDialect)
const insert = compiled.changeStatements.get('notes.insert') as ChangeStatement
/** Copies of each note go to another table first. */
const copies = 20
const insertCopied: ChangeStatement = {
  ...insert,
  preceding: {
    onlyIf: 'select 1',
    sql: `with recursive copies (n) as (select 1 union all select n + 1 from copies where n < ${copies})
      insert into gardens (id, text, topic) select ? * ${copies} + n, ?, ? from copies`,
  },
}
const changeStatements = new Map([
  ...compiled.changeStatements,
  ['notes.insertCopied', insertCopied],
])
const insertOf = (id: number, text = '', name = 'notes.insert'): Change => [
  name,
  ...valuesOf(insert, note(id, text)),
]

test('groups that wait together share a commit, which one thread hears of', async () => {
  const { one, other } = await open()
  const startMs = performance.now()
  one.send(1, 2)
  other.send(2, 3)

  const ofOne = await one.answer()
  const ofOther = await other.answer()

  expect(ofOne.affectedRows).toEqual([1, 1])
  expect(ofOther.affectedRows).toEqual([0, 1])
  const commits = [ofOne.commit, ofOther.commit].filter(commit => commit !== undefined)
  expect(commits).toEqual([{ changes: 4, ms: expect.any(Number) }])
  expect(commits[0].ms).toBeGreaterThan(0)
  expect(commits[0].ms).toBeLessThan(performance.now() - startMs)
})

test('groups of a transaction that fails fail together', async () => {
  const { connection, one, other } = await open()
  connection.exec(`
    create trigger full before insert on notes when new.id = 4
    begin select raise(abort, 'no more'); end`)
  const refusal = { reason: expect.stringContaining('no more') }

  one.send(1, 2)
  other.send(3, 4)

  expect(await one.answer()).toEqual(refusal)
  expect(await other.answer()).toEqual(refusal)
  one.send(1)
  expect(await one.answer(), 'the next group').toMatchObject({ affectedRows: [1] })
})

test('an outage that cannot be overwritten lasts until it can', async () => {
  const { connection, one, other } = await open()
  const blocked = { blockedBecause: expect.stringContaining('SQLITE_READONLY') }

  connection.pragma('query_only = on')
  one.send(1)
  expect(await one.answer(), 'one thread').toEqual(blocked)
  expect(await other.answer(), 'the other thread').toEqual(blocked)
  expect(await one.answer(), 'the group').toEqual({ reason: blocked.blockedBecause })

  vi.advanceTimersByTime(1_000)
  connection.pragma('query_only = off')
  vi.advanceTimersByTime(1_000)
  expect(await one.answer()).toEqual({ blockedBecause: undefined })
  expect(await other.answer()).toEqual({ blockedBecause: undefined })
  one.send(1)
  expect(await one.answer()).toMatchObject({ affectedRows: [1] })
})

test('each outage of moved files begins and ends within a second', async () => {
  const { file, connection, other } = await open()
  const folder = dirname(file)
  for (const outages of [1n, 2n]) {
    renameSync(folder, `${folder}-moved`)
    vi.advanceTimersByTime(1_000)
    const begun = await other.answer()
    renameSync(`${folder}-moved`, folder)
    vi.advanceTimersByTime(1_000)
    const ended = await other.answer()

    const blockedBecause = expect.stringContaining('removed, moved or replaced')
    expect(begun, `outage ${outages}`).toEqual({ blockedBecause })
    expect(ended, `outage ${outages}`).toEqual({ blockedBecause: undefined })
    const writes = connection.pragma('user_version', { simple: true })
    expect(writes, 'each outage ends with one write').toBe(outages)
  }
})

/** Makes the WAL longer by this many pages. */
function lengthenWal(connection: Database.Database, pages: number) {
  connection.exec('create table if not exists texts (text text)')
  connection.prepare('insert into texts values (zeroblob(?))').run(pages * (512 - 4))
}

/** Lets a second pass between two looks at the clock, so that every check is due. */
function hurryClock() {
  let now = performance.now()
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 1_000
    return now
  })
}

test('a change is answered before the WAL is copied', async () => {
  const { connection, one } = await open()
  lengthenWal(connection, 24_000)
  hurryClock()
  const fdatasync = spyOnFs('fdatasyncSync')
  const answerAtFsync = new Promise(resolve =>
    fdatasync.mockImplementationOnce(() => resolve(one.answerSoFar())),
  )

  one.send(1)

  expect(await answerAtFsync).toMatchObject({ affectedRows: [1] })
})

test('a change that makes the WAL too long is stored, the next refused', async () => {
  const { file, connection, one } = await open()
  const reader = new Database(file, { readonly: true })
  reader.exec('begin').pragma('user_version')
  lengthenWal(connection, longPages)
  hurryClock()
  const full = expect.stringMatching(/WAL is full/)

  one.send(1)
  expect(await one.answer()).toMatchObject({ affectedRows: [1] })
  expect(await one.answer()).toEqual({ blockedBecause: full })

  one.send(2)
  expect(await one.answer()).toEqual({ reason: full })

  reader.close()
  vi.advanceTimersByTime(1_000)
  expect(await one.answer()).toEqual({ blockedBecause: undefined })
})

test('changes are made while the WAL cannot be copied', async () => {
  let isFailing = true
  const { connection, one } = await open(512, each =>
    failStatements(each, 'passive', () => isFailing),
  )
  lengthenWal(connection, 24_000)
  hurryClock()
  const made = { affectedRows: [1] }

  one.send(1)
  expect(await one.answer()).toMatchObject(made)
  expect(await one.answer()).toEqual({
    checkpointFailure: 'the disk fails (SQLITE_IOERR_WRITE)',
  })
  one.send(2)
  expect(await one.answer(), 'a change after the failure').toMatchObject(made)

  isFailing = false
  one.send(3)
  expect(await one.answer(), 'a change once the disk works').toMatchObject(made)
  expect(await one.answer()).toEqual({ checkpointFailure: undefined })
})

test('a WAL of unknown length blocks the writer until it is known', async () => {
  let answer: unknown
  let readAnswer = (): unknown => undefined
  let isFailing = true
  const { one } = await open(512, connection =>
    failStatements(connection, 'noop', () => {
      // Until the change is answered, the guard of the files reads the length.
      answer ??= readAnswer()
      return answer !== undefined && isFailing
    }),
  )
  readAnswer = one.answerSoFar
  hurryClock()

  one.send(1)
  expect(await one.answer()).toEqual({
    blockedBecause: 'the disk fails (SQLITE_IOERR_WRITE)',
  })
  expect(answer).toMatchObject({ affectedRows: [1] })

  isFailing = false
  vi.advanceTimersByTime(1_000)
  expect(await one.answer()).toEqual({ blockedBecause: undefined })
  one.send(2)
  expect(await one.answer()).toMatchObject({ affectedRows: [1] })
})

test('a transaction is bounded by what it writes, copies included', async () => {
  const { connect } = await open(4_096)
  const bulk = connect('bulk')
  const text = 'x'.repeat(1_500)
  const groups = Array.from({ length: 3 }, (_, group) =>
    Array.from({ length: 250 }, (_, at) =>
      insertOf(group * 250 + at, text, 'notes.insertCopied'),
    ),
  )

  for (const group of groups) {
    bulk.sendChanges(group)
  }
  const changesOfCommits: number[] = []
  for (const _ of groups) {
    const { commit } = await bulk.answer()
    changesOfCommits.push(commit?.changes ?? 0)
  }

  // 250 changes with 20 copies each are 8.5 MiB, so two groups fill a transaction.
  expect(changesOfCommits).toEqual([500, 0, 250])
})

test('a process that can open no further file makes changes', async () => {
  const { one } = await open()
  hurryClock()
  const tooMany = Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  spyOnFs('openSync').mockImplementation(() => {
    throw tooMany
  })

  one.send(1)

  expect(await one.answer()).toMatchObject({ affectedRows: [1] })
})
