import { createWriteStream, existsSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { replaceFile, storeFiles } from '@plant-store/persistence'
import { Failure, fileFailure } from './failure.ts'

/** @throws Failure when a file is the store itself, or a part of it */
export function refuseStore(file: string, storeUrl: string): void {
  if (storeFiles(storeUrl).some(part => isSameFile(file, part)))
    throw new Failure(`${file} is the store itself`)
}

export function isSameFile(a: string, b: string): boolean {
  if (located(a) === located(b)) return true
  const [first, second] = [a, b].map(file => statSync(file, { throwIfNoEntry: false }))
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev
}

/** Also of a file that is not there yet. */
function located(file: string): string {
  const folder = dirname(resolve(file))
  return join(existsSync(folder) ? realpathSync(folder) : folder, basename(file))
}

const bufferBytes = 1024 * 1024

/** @throws Failure, or Error of {@link replaceFile}; what was there before is then still there */
export async function writeFile(
  file: string,
  { force, mode = 0o666 }: { readonly force: boolean; readonly mode?: number },
  pieces: AsyncIterable<string> | Iterable<string>,
): Promise<void> {
  try {
    // While one buffer is being written, the next is being filled.
    await replaceFile(file, { force }, partial =>
      pipeline(pieces, createWriteStream(partial, { flags: 'wx', mode, highWaterMark: bufferBytes })),
    )
  } catch (error) {
    throw (error as NodeJS.ErrnoException).syscall === undefined ? error : fileFailure(file, error)
  }
}
