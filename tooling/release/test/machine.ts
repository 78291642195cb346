import { spawnSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inject } from 'vitest'
import { librariesOf } from '../src/libraries.ts'
import { run } from '../src/run.ts'

const out = inject('out')

/** What a release is made with: it is made on Debian, and on what is made of it. */
export const canRelease = out !== undefined

/** Returns the file of the release with this ending. */
export function releasedFile(ending: string): string {
  const [file] = globSync(`*${ending}`, { cwd: out })
  if (out === undefined || file === undefined) throw new Error(`no ${ending} was made`)
  return join(out, file)
}

/** Why a test is skipped where even root may not change the root folder. */
export const mayNotChroot = 'not allowed: changing the root folder'
export const mayChroot = () => spawnSync('chroot', ['/', '/bin/true']).status === 0

/** Why a test is skipped where a process gets no mounts of its own. */
export const mayNotUnshare = 'not allowed: mounts of a process'
export const mayUnshare = () => spawnSync('unshare', ['--mount', 'true']).status === 0

/** Puts what is in the archive of the release into a folder, by links to its files, and returns the folder. */
export function unpackRelease(into: string): string {
  mkdirSync(into, { recursive: true })
  run('cp', '--archive', '--link', `${out}/unpacked/.`, into)
  return into
}

/** Copies programs and what they load into another root. */
export function copyPrograms(programs: readonly string[], root: string): void {
  for (const program of programs) for (const file of [program, ...librariesOf(program)]) copyInto(root, file)
}

export function copyInto(root: string, file: string): void {
  mkdirSync(dirname(join(root, file)), { recursive: true })
  copyFileSync(file, join(root, file))
}

/** Creates a plant, and returns the answer's status and text. */
export async function post(url: string, token: string, plant: object): Promise<string> {
  const response = await fetch(`${url}/plants`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(plant),
  })
  return `${response.status} ${await response.text()}`
}

/** Reads a plant, and returns the answer's status and text. */
export async function get(url: string, token: string, id: number): Promise<string> {
  const response = await fetch(`${url}/plants/${id}`, { headers: { authorization: `Bearer ${token}` } })
  return `${response.status} ${await response.text()}`
}
