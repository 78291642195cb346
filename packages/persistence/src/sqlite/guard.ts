import { type BigIntStats, closeSync, openSync, readSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type Database from 'better-sqlite3'
import { detailedReasonOf, mergeWal, openConnection } from './connection.ts'

/**
 * Guards the files of a store that this connection has open with a WAL, as SQLite notices none of this:
 *
 * - It goes on with a file that was removed, and a crash then loses every change.
 * - It writes behind the end of a WAL that was cut, and a crash then loses all that follows the gap.
 * - Once the shm is gone, the next process makes another, and both write without a common lock. So this has no end but
 *   that of the process.
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
  const frameBytes = 24 + Number(connection.pragma('page_size', { simple: true }))
  // Counts the frames and copies none.
  const walState = connection.prepare<[], { log: bigint }>('pragma wal_checkpoint(noop)')
  let bytesSeen = 0n
  let seen = { frames: 0, last: noFrame }
  let wasShmMoved = false

  const isMoved = (path: string) => {
    const [before, now] = [opened.get(path), statOf(path)]
    return before === undefined || before.ino !== now?.ino || before.dev !== now.dev
  }
  const moved = (path: string) =>
    `${basename(path)} was removed, moved or replaced: ${path === shm ? '' : 'put it back, or '}stop the server`
  const cut = (path: string) => `${basename(path)} was cut: stop the server and check the store`

  /**
   * Returns whether the WAL has no gap. A later commit may hide one, but not that it begins in the last frame seen before.
   */
  const isWalWhole = () => {
    const frames = Number(walState.get()?.log)
    const descriptor = openSync(wal, 'r')
    const read = (frame: number) => {
      const bytes = Buffer.alloc(frameBytes)
      const at = walHeaderBytes + (frame - 1) * frameBytes
      return readSync(descriptor, bytes, 0, frameBytes, at) === frameBytes ? bytes : noFrame
    }
    try {
      const last = frames > 0 ? read(frames) : noFrame
      const again = seen.frames > 0 && seen.frames <= frames ? read(seen.frames) : seen.last
      // With another salt it is of a WAL that was begun again.
      const isUnchanged =
        again.equals(seen.last) || (isFrame(again) && !saltOf(again).equals(saltOf(seen.last)))
      if (!isUnchanged || (frames > 0 && !isFrame(last))) return false
      seen = { frames, last }
      return true
    } finally {
      closeSync(descriptor)
    }
  }

  /** Returns what is wrong, and whether the WAL is whole and nobody else can have added to it. */
  const find = (): { readonly reason: string; readonly isMergeable: boolean } | undefined => {
    const bytes = statOf(file)?.size ?? 0n
    if (isMoved(file)) return { reason: moved(file), isMergeable: false }
    if (bytes < bytesSeen) return { reason: cut(file), isMergeable: false }
    bytesSeen = bytes
    wasShmMoved ||= isMoved(shm)
    const isMergeable = !wasShmMoved || statOf(shm) === undefined
    if (isMoved(wal)) return { reason: moved(wal), isMergeable }
    if (!isWalWhole()) return { reason: cut(wal), isMergeable: false }
    return wasShmMoved ? { reason: moved(shm), isMergeable } : undefined
  }

  const fault = () => {
    try {
      return find()
    } catch (error) {
      return { reason: detailedReasonOf(error), isMergeable: false }
    }
  }

  const look = (): string | undefined => {
    const found = fault()
    // What no name leads to any more is then safe in the file, whatever becomes of this process.
    if (found?.isMergeable && statOf(wal) === undefined) connection.pragma('wal_checkpoint(passive)')
    return found?.reason
  }

  const reason = look()
  if (reason !== undefined) {
    second.close()
    throw new Error(reason)
  }
  return {
    /** Returns what is wrong with the files, or `undefined`. Takes some 10 µs. */
    look,
    /** Closes the connection, and merges the WAL into the file unless that could do harm. */
    close() {
      if (fault()?.isMergeable ?? true) {
        second.close()
        mergeWal(connection)
      }
      connection.close()
      second.close()
    },
  }
}

const walHeaderBytes = 32
const noFrame = Buffer.alloc(0)
/** No page has the number 0. */
const isFrame = (bytes: Buffer) => bytes.length > 0 && bytes.readUInt32BE(0) !== 0
const saltOf = (frame: Buffer) => frame.subarray(8, 16)

/** Returns `undefined` also for a file that only an open connection or another mount still has. */
function statOf(path: string): BigIntStats | undefined {
  try {
    const stat = statSync(path, { bigint: true })
    return stat.nlink === 0n ? undefined : stat
  } catch {
    return undefined
  }
}
