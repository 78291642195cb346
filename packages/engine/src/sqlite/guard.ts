import { type BigIntStats, closeSync, openSync, readSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type Database from 'better-sqlite3'
import { detailedReasonOf, mergeWal, openConnection } from './connection.ts'

interface Fault {
  readonly reason: string
  /** Whether the WAL is whole, and nobody else can have added to it. */
  readonly isMergeable: boolean
}

/**
 * Guards the files of a store that this connection has open with a WAL, as SQLite does not. It goes on with a file that
 * was removed, and a crash then loses every change. It writes behind the end of a WAL that was cut, and a crash then loses
 * all that follows the gap. Once the shm is gone, the next process makes another, and both write without a common lock.
 * So this has no end but that of the process.
 *
 * @throws Error if something is wrong already
 */
export function guardFiles(connection: Database.Database) {
  const { name: file } = connection
  const [wal, shm] = [`${file}-wal`, `${file}-shm`]
  // While it is open, no other connection merges the WAL when it closes.
  const second = openConnection(file, { readonly: true })
  second.pragma('user_version')
  const opened = new Map([file, wal, shm].map(path => [path, statOf(path)]))
  const frameBuffer = Buffer.alloc(24 + Number(connection.pragma('page_size', { simple: true })))
  // Counts the frames and copies none.
  const walState = connection.prepare<[], { log: bigint }>('pragma wal_checkpoint(noop)')
  let bytesSeen = 0n
  let framesSeen = 0
  let wasShmMoved = false
  let loss: Fault | undefined

  const isMoved = (path: string) => {
    const [before, now] = [opened.get(path), statOf(path)]
    return before === undefined || before.ino !== now?.ino || before.dev !== now.dev
  }
  const moved = (path: string) =>
    `${basename(path)} was removed, moved or replaced: ${path === shm ? '' : 'put it back, or '}stop the server`
  const cut = (path: string) => `${basename(path)} was cut: stop the server and check the store`

  const hasFrame = (frame: number) => {
    const descriptor = openSync(wal, 'r')
    const bytes = readSync(
      descriptor,
      frameBuffer,
      0,
      frameBuffer.length,
      32 + (frame - 1) * frameBuffer.length,
    )
    closeSync(descriptor)
    // It begins with the number of its page, from 1.
    return bytes === frameBuffer.length && frameBuffer.readUInt32BE(0) > 0
  }
  const isWalWhole = () => {
    const frames = Number(walState.get()?.log)
    // Also the last one that was seen before: what was written since may hide a gap there.
    const isWhole = [frames, Math.min(frames, framesSeen)].every(frame => frame <= 0 || hasFrame(frame))
    if (isWhole) framesSeen = frames
    return isWhole
  }

  const find = (): Fault | undefined => {
    if (loss !== undefined) return loss
    const bytes = statOf(file)?.size ?? 0n
    if (isMoved(file)) return { reason: moved(file), isMergeable: false }
    if (bytes < bytesSeen) return { reason: cut(file), isMergeable: false }
    bytesSeen = bytes
    wasShmMoved ||= isMoved(shm)
    const isMergeable = !wasShmMoved || statOf(shm) === undefined
    // What no name leads to any more is then safe in the file, whatever becomes of this process.
    if (isMergeable && statOf(wal) === undefined) connection.pragma('wal_checkpoint(passive)')
    if (isMoved(wal)) return { reason: moved(wal), isMergeable }
    if (!isWalWhole()) return { reason: cut(wal), isMergeable: false }
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

  const fault = findFault()
  if (fault !== undefined) {
    second.close()
    throw new Error(fault.reason)
  }
  return {
    findFault,
    /**
     * From now on there is this fault. Pages that SQLite counts as copied from the WAL may be lost: no process restarts
     * it while this one reads it, and the next that opens the store alone copies all of it.
     */
    keepWal(reason: string) {
      loss ??= { reason: `${reason}: stop every program that uses the store`, isMergeable: false }
      if (!second.inTransaction) second.exec('begin').pragma('user_version')
    },
    /** Closes the connection, and merges the WAL into the file unless that could do harm. */
    close() {
      if (findFault()?.isMergeable ?? true) {
        second.close()
        mergeWal(connection)
      }
      connection.close()
      second.close()
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
