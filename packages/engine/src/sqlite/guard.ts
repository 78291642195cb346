import { type BigIntStats, closeSync, openSync, readSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type Database from 'better-sqlite3'
import { detailedReasonOf, mergeWal, openConnection } from './connection.ts'

/** What is wrong with the files. */
interface Fault {
  readonly reason: string
  /** Whether the WAL is whole, and nobody else can have added to it. */
  readonly isMergeable: boolean
}

/** Of the first page: the version for writing, which is 2 with a WAL, the counter of changes, and the number of pages. */
const headerOffsets = { writeVersion: 18, changes: 24, pages: 28 }
const headerBytes = 32

/**
 * Guards the files of a store that this connection has open with a WAL, as SQLite does not. It would go on writing,
 * and a crash would lose every change since.
 *
 * | what became of a file | how `findFault` sees it | over when |
 * | --- | --- | --- |
 * | removed, moved, replaced | its name leads to another inode, or to none | it is back |
 * | the shm was removed, moved, replaced | in the same way. The next process makes another, and both write without a common lock | this process ends |
 * | the store was cut | it is shorter than before | it is as long again |
 * | the store was overwritten, as by `cp backup store` | its header is that of a backup, or of an earlier state | this process ends |
 * | the WAL was cut | its last frame is missing, or empty: SQLite writes behind the gap | it is whole again |
 * | pages copied from the WAL were lost (`noteLostPages`) | an fsync failed after them | every process ends |
 *
 * Other processes may write to the store, and copy its WAL. A copy of the store as it is now, put back before it changes
 * again, is not noticed.
 *
 * The guard opens no file after its start: a process without descriptors goes on. It closes no file of the store before
 * all connections: closing one drops the locks that the process has on it.
 *
 * @throws Error if something is wrong already
 */
export function guardFiles(connection: Database.Database) {
  const { name: file } = connection
  const [wal, shm] = [`${file}-wal`, `${file}-shm`]
  // While it is open, no other connection merges the WAL when it closes.
  const walKeeper = openConnection(file, { readonly: true })
  walKeeper.pragma('user_version')
  const opened = new Map([file, wal, shm].map(path => [path, statOf(path)]))
  const descriptors = { file: openSync(file, 'r+'), wal: openSync(wal, 'r') }
  const header = Buffer.alloc(headerBytes)
  const frame = Buffer.alloc(
    24 + Number(connection.pragma('page_size', { simple: true })),
  )
  // Counts the frames and copies none.
  const walState = connection.prepare<[], { log: bigint }>('pragma wal_checkpoint(noop)')
  let bytesSeen = 0n
  let changesSeen = 0
  let pagesSeen = 0
  let framesSeen = 0
  let wasShmMoved = false
  let permanentFault: Fault | undefined

  const isMoved = (path: string) => {
    const [before, now] = [opened.get(path), statOf(path)]
    return before === undefined || before.ino !== now?.ino || before.dev !== now.dev
  }
  const moved = (path: string) =>
    `${basename(path)} was removed, moved or replaced: ${path === shm ? '' : 'put it back, or '}stop the server`
  const cut = (path: string) =>
    `${basename(path)} was cut: stop the server and check the store`
  const overwritten = `${basename(file)} was overwritten: stop the server and restore a backup`

  const isOverwritten = () => {
    if (readSync(descriptors.file, header, 0, headerBytes, 0) < headerBytes) {
      return true
    }
    const changes = header.readUInt32BE(headerOffsets.changes)
    const pages = header.readUInt32BE(headerOffsets.pages)
    // Both only grow, whichever process copies the first page from the WAL.
    const isEarlier = changes < changesSeen || pages < pagesSeen
    changesSeen = changes
    pagesSeen = pages
    return isEarlier || header[headerOffsets.writeVersion] !== 2
  }
  const hasFrame = (number: number) => {
    const bytes = readSync(
      descriptors.wal,
      frame,
      0,
      frame.length,
      32 + (number - 1) * frame.length,
    )
    // It begins with the number of its page, from 1.
    return bytes === frame.length && frame.readUInt32BE(0) > 0
  }
  const isWalWhole = () => {
    const frames = Number(walState.get()?.log)
    // Also the last one that was seen before: what was written since may hide a gap there.
    const isWhole = [frames, Math.min(frames, framesSeen)].every(
      number => number <= 0 || hasFrame(number),
    )
    if (isWhole) {
      framesSeen = frames
    }
    return isWhole
  }

  const find = (): Fault | undefined => {
    if (permanentFault !== undefined) {
      return permanentFault
    }
    const bytes = statOf(file)?.size ?? 0n
    if (isMoved(file)) {
      return { reason: moved(file), isMergeable: false }
    }
    if (bytes < bytesSeen) {
      return { reason: cut(file), isMergeable: false }
    }
    bytesSeen = bytes
    if (isOverwritten()) {
      permanentFault = { reason: overwritten, isMergeable: false }
    }
    if (permanentFault !== undefined) {
      return permanentFault
    }
    wasShmMoved ||= isMoved(shm)
    const isMergeable = !wasShmMoved || statOf(shm) === undefined
    // What no name leads to any more is then safe in the file, whatever becomes of this process.
    if (isMergeable && statOf(wal) === undefined) {
      connection.pragma('wal_checkpoint(passive)')
    }
    if (isMoved(wal)) {
      return { reason: moved(wal), isMergeable }
    }
    if (!isWalWhole()) {
      return { reason: cut(wal), isMergeable: false }
    }
    return wasShmMoved ? { reason: moved(shm), isMergeable } : undefined
  }

  /** Returns what is wrong with the files, or `undefined`. */
  const findFault = () => {
    try {
      return find()
    } catch (error) {
      return { reason: detailedReasonOf(error), isMergeable: false }
    }
  }
  const closeDescriptors = () => {
    for (const descriptor of Object.values(descriptors)) {
      closeSync(descriptor)
    }
  }

  const fault = findFault()
  if (fault !== undefined) {
    walKeeper.close()
    connection.close()
    closeDescriptors()
    throw new Error(fault.reason)
  }
  return {
    findFault,
    /** Of the store, for its fsync. */
    descriptor: descriptors.file,
    /**
     * From now on there is this fault, and the WAL is kept. Pages that SQLite counts as copied from it may be lost: no process
     * restarts it while this one reads it, and the next that opens the store alone copies all of it.
     */
    noteLostPages(reason: string) {
      permanentFault ??= {
        reason: `${reason}: stop every program that uses the store`,
        isMergeable: false,
      }
      if (!walKeeper.inTransaction) {
        walKeeper.exec('begin').pragma('user_version')
      }
    },
    /** Closes the connection, and merges the WAL into the file unless that could do harm. */
    close() {
      if (findFault()?.isMergeable ?? true) {
        walKeeper.close()
        mergeWal(connection)
      }
      connection.close()
      walKeeper.close()
      closeDescriptors()
    },
  }
}

/** Returns `undefined` also for a file that only an open connection or another mount still has. */
function statOf(path: string): BigIntStats | undefined {
  try {
    const stat = statSync(path, { bigint: true })
    return stat.nlink === 0n ? undefined : stat
  } catch {
    return undefined
  }
}
