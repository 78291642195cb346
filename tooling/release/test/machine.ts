import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, globSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isInstalled, launch, type Server, until } from '@plant-store/harness'
import { expect, inject } from 'vitest'
import { run } from '../src/run.ts'

/** Waits for what a global setup makes. */
export const made = (folder: string): Promise<void> =>
  until('the global setup', () => existsSync(join(folder, 'made')), 180_000)

const out = inject('out')
if (out !== undefined) {
  await made(out)
}

/** Whether this machine makes releases: Debian does, and systems derived from it. */
export const canRelease = out !== undefined

/** Returns whether a program ends with success. */
export function succeeds(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args, { timeout: 20_000 }).status === 0
}

/** Whether the image can be made and read. */
export const hasUmoci = isInstalled('umoci')

/** Returns the file of the release with this ending. */
export function releasedFile(ending: string): string {
  const [file] = globSync(`*${ending}`, { cwd: out })
  if (out === undefined || file === undefined) {
    throw new Error(`no ${ending} was made`)
  }
  return join(out, file)
}

/** Runs a program to its end. */
export async function ended(
  command: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
) {
  await using program = launch(command, { environment })
  return { code: await program.ended, stdout: program.output(), stderr: program.errors() }
}

/**
 * Puts what is in the archive of the release into a folder, by links to its files, and
 * returns the folder.
 */
export function unpackRelease(into: string): string {
  mkdirSync(into, { recursive: true })
  run('cp', '--archive', '--link', `${out}/unpacked/.`, into)
  return into
}

export function copyInto(root: string, file: string): void {
  mkdirSync(dirname(join(root, file)), { recursive: true })
  copyFileSync(file, join(root, file))
}

const monstera = '{"id":1,"name":"Monstera"}'

/** Creates plant 1. */
export async function assertCreates(url: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(`${url}/plants`, {
    method: 'POST',
    headers,
    body: monstera,
  })
  expect([response.status, await response.text()]).toEqual([200, '{"name":"Monstera"}'])
}

/** Reads plant 1. */
export async function assertReads(url: string, token: string): Promise<void> {
  const response = await fetch(`${url}/plants/1`, {
    headers: { authorization: `Bearer ${token}` },
  })
  expect([response.status, await response.text()]).toEqual([200, monstera])
}

/**
 * Takes a server without tokens, beside its command line, through a token, a plant and a
 * backup to its end.
 */
export async function assertServes(
  server: Server,
  plantStore: (...args: readonly string[]) => ReturnType<typeof ended>,
): Promise<void> {
  const created = await plantStore(
    'token',
    'create',
    '--name',
    'test',
    '--scope',
    'write',
  )
  expect(created).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^plantstore_\S+\n$/),
  })
  const token = created.stdout.trim()
  await assertCreates(server.url, token)
  await assertReads(server.url, token)
  expect(await plantStore('backup', '/data/plants.backup')).toMatchObject({ code: 0 })
  expect(await server.end('SIGTERM')).toBe(0)
  expect(server.warnings().map(({ msg }) => msg)).toEqual([
    expect.stringMatching(/^there is no access token/),
  ])
}
