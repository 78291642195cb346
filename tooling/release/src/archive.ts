import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

interface ArchiveOptions {
  readonly from: string
  readonly uid?: number
}

/**
 * Writes a tar archive. Owners and times are fixed, so that the same files make the same
 * bytes.
 */
export async function writeTar(
  paths: readonly string[],
  archive: string,
  { from, uid = 0 }: ArchiveOptions,
): Promise<void> {
  const same = [
    '--sort=name',
    '--mtime=2000-01-01 00:00Z',
    '--mode=u=rwX,go=rX',
    '--format=ustar',
  ]
  const owner = [`--owner=:${uid}`, `--group=:${uid}`, '--numeric-owner']
  const tar = spawn('tar', ['--create', ...same, ...owner, '-C', from, ...paths], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(tar, 'close')
  const compressed = archive.endsWith('.gz') ? [createGzip()] : []
  await pipeline([tar.stdout, ...compressed, createWriteStream(archive)])
  const [status] = await ended
  if (status !== 0) {
    throw new Error(`tar ended with ${status}`)
  }
}

/** Writes the SHA-256 of a file beside it, as `sha256sum --check` reads it. */
export async function writeSha256(file: string): Promise<void> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  writeFileSync(`${file}.sha256`, `${hash.digest('hex')}  ${basename(file)}\n`)
}
