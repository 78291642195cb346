import { createWriteStream, existsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { storeFiles } from '@plant-store/persistence'
import { Failure, fileFailure } from './failure.ts'

/** @throws Failure when writing to the file would destroy the store, or (unless that is wanted) another file */
export function refuseTarget(file: string, storeUrl: string, { force }: { force: boolean }): void {
  if (storeFiles(storeUrl).some(part => isSameFile(file, part)))
    throw new Failure(`${file} is the store itself`)
  const stat = statSync(file, { throwIfNoEntry: false })
  if (stat === undefined) return
  if (stat.isDirectory()) throw new Failure(`${file}: it is a folder`)
  if (!force) throw new Failure(`${file} is already there: --force replaces it`)
}

export function isSameFile(a: string, b: string): boolean {
  if (resolve(a) === resolve(b)) return true
  const [first, second] = [a, b].map(file => statSync(file, { throwIfNoEntry: false }))
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev
}

const bufferBytes = 1024 * 1024

/**
 * Writes a file that is there whole or not at all: beside its place, to the disk, and then into its place.
 *
 * @throws Failure; nothing of the file is left then, and one that was there before still is
 */
export async function writeWhole(file: string, pieces: AsyncIterable<string>): Promise<void> {
  const partial = join(dirname(resolve(file)), `.${basename(file)}.${process.pid}.part`)
  try {
    // While one buffer is being written, the next is being filled.
    await pipeline(
      pieces,
      createWriteStream(partial, { flags: 'wx', highWaterMark: bufferBytes, flush: true }),
    )
    await rename(partial, file)
    await using folder = await open(dirname(partial), 'r')
    await folder.sync()
  } catch (error) {
    if (existsSync(partial)) await rm(partial)
    throw (error as NodeJS.ErrnoException).syscall === undefined ? error : fileFailure(file, error)
  }
}
