import { Failure } from '../exit-codes.ts'

/** Says in plain words why the system refused a file. */
export function fileFailure(file: string, cause: unknown): Failure {
  const { code = '', message } = cause as NodeJS.ErrnoException
  return new Failure(`${file}: ${reasons[code] ?? message}`, undefined, { cause })
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  ENOENT: 'there is no such file or folder',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of the path is not a folder',
  EROFS: 'the file system can only be read',
}
