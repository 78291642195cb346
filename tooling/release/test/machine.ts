import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { isInstalled, launch, type Server } from '@plant-store/harness'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { afterAll, expect } from 'vitest'
import { platform } from '../src/folder.ts'
import { run, start } from '../src/run.ts'

/** Whether this machine makes releases. */
export const canRelease =
  `${process.platform}-${process.arch}` === platform && isInstalled('dpkg-query')

/** Returns whether a program ends with success. */
export const succeeds = (program: string, ...args: readonly string[]): boolean =>
  spawnSync(program, args, { timeout: 20_000 }).status === 0

/** The folder of the release, which is removed after the tests of the file. */
const out = temporaryFolder(afterAll)

/** @param options of the program that makes it */
export async function makeRelease(...options: readonly string[]): Promise<void> {
  const program = join(import.meta.dirname, '../src/main.ts')
  await start(process.execPath, [program, '--out', out, ...options])
  const unpacked = join(out, 'unpacked')
  mkdirSync(unpacked)
  const archive = ['-xzf', releaseFile('.tar.gz'), '--strip-components=1']
  await start('tar', [...archive, '-C', unpacked])
}

/** Returns the file of the release with this ending. */
export function releaseFile(ending: string): string {
  const [file = 'none'] = globSync(`*${ending}`, { cwd: out })
  return join(out, file)
}

/** Puts the files of the archive into a folder, by links, and returns the folder. */
export function unpackRelease(into: string): string {
  mkdirSync(into, { recursive: true })
  run('cp', '--archive', '--link', `${out}/unpacked/.`, into)
  return into
}

/** Runs a program to its end. */
export async function ended(
  command: readonly [string, ...string[]],
  options: Parameters<typeof launch>[1] = {},
) {
  await using program = launch(command, options)
  return { code: await program.ended, stdout: program.output(), stderr: program.errors() }
}

const monstera = '{"id":1,"name":"Monstera"}'

/** Creates plant 1, and reads it. */
export async function assertStores(url: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const post = { method: 'POST', headers, body: monstera }
  expect(await (await fetch(`${url}/plants`, post)).text()).toBe('{"name":"Monstera"}')
  await assertReads(url, token)
}

/** Reads plant 1. */
export async function assertReads(url: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${url}/plants/1`, { headers })
  expect([response.status, await response.text()]).toEqual([200, monstera])
}

/**
 * Takes a server without tokens, beside its command line, through a token, a plant and a
 * backup to its end.
 */
export async function assertKeepsPlants(
  server: Server,
  plantStore: readonly [string, ...string[]],
  options: Parameters<typeof launch>[1],
  backup = 'plants.backup',
): Promise<void> {
  const create = ['token', 'create', '--name', 'test', '--scope', 'write']
  const created = await ended([...plantStore, ...create], options)
  expect(created).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^plantstore_/),
  })
  await assertStores(server.url, created.stdout.trim())
  const copied = await ended([...plantStore, 'backup', backup], options)
  expect(copied).toMatchObject({ code: 0 })
  expect(await server.end('SIGTERM')).toBe(0)
  expect(server.warnings().map(({ msg }) => msg)).toEqual([
    expect.stringMatching(/^there is no access token/),
  ])
}
