import { statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { followLinks, replaceFile, storeFiles } from '@plant-store/engine'
import { CommandError, fileError, withFile } from '../command-error.ts'
import { writeToStream } from '../output.ts'

/** @throws CommandError if the file is the store or part of it */
export function refuseStore(file: string, storeUrl: string): void {
  if (storeFiles(storeUrl).some(own => isSameFile(file, own))) {
    throw new CommandError(`${file} is the store itself`)
  }
}

export function isSameFile(a: string, b: string): boolean {
  if (followLinks(a) === followLinks(b)) {
    return true
  }
  const first = statOf(a)
  const second = statOf(b)
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev
}

/** Returns `undefined` if there is no such file. */
export function statOf(path: string) {
  return withFile(path, () => statSync(path, { throwIfNoEntry: false }))
}

/**
 * Writes a file completely or not at all.
 *
 * @param file its path, or `-` for standard output
 */
export async function writeOutput(
  file: string,
  force: boolean,
  pieces: AsyncIterable<string>,
): Promise<void> {
  if (file === '-') {
    return writeToStream(process.stdout, pieces)
  }
  try {
    await replaceFile(file, { force }, async partial => {
      // Open the file first. A stream that is destroyed while it opens its file would
      // still make it, after it was removed.
      await using handle = await open(partial, 'wx')
      // The next buffer is filled while this one is written.
      await pipeline(pieces, handle.createWriteStream({ highWaterMark: 1024 * 1024 }))
    })
  } catch (error) {
    const isOfSystem = error instanceof Error && 'syscall' in error
    if (isOfSystem) {
      throw fileError(file, error)
    }
    throw error
  }
}
