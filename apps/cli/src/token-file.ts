import { createReadStream } from 'node:fs'
import { type AccessToken, isTokenName, type Scope, scopes, type TokenHash } from '@plant-store/access'
import { parseJsonRecord } from '@plant-store/json'
import { openStorage } from '@plant-store/persistence'
import { Failure, fileFailure } from './failure.ts'
import { decode, lineBytesMaxDefault, wholeLines } from './lines.ts'
import { counted, type Output, print } from './output.ts'
import { refuseStore, writeFile } from './output-file.ts'
import { toJson } from './tokens.ts'

/** Writes all tokens as NDJSON: their hashes and what is known of them, so that they stay valid in another store. */
export async function exportTokens(
  url: string,
  { to, force }: { to: string; force: boolean },
  output: Output,
): Promise<void> {
  if (to !== '-') refuseStore(to, url)
  await using storage = await openStorage({ url, mustExist: true })
  const entries = await storage.tokens.entries()
  const lines = entries.map(([token, hash]) => `${JSON.stringify({ ...toJson(token), hash })}\n`)
  if (to === '-') process.stdout.write(lines.join(''))
  else await writeFile(to, { force, mode: 0o600 }, lines)
  print(
    output,
    { exported: entries.length, file: to === '-' ? null : to },
    `${counted(entries.length, 'token')} exported`,
  )
}

/** Nothing is stored unless every line can be. */
export async function importTokens(url: string, from: string, output: Output): Promise<void> {
  const entries = await readEntries(from)
  await using storage = await openStorage({ url })
  const stored = await storage.tokens.entries()
  const hashes = new Map(stored.map(([{ name }, hash]) => [name, hash]))
  const names = new Map(stored.map(([{ name }, hash]) => [hash, name]))
  for (const [{ name }, hash] of entries) {
    if ((hashes.get(name) ?? hash) !== hash || (names.get(hash) ?? name) !== name) {
      throw new Failure(
        `${from}: the name ${name}, or its token, belongs to another: revoke that first (nothing was imported)`,
      )
    }
    hashes.set(name, hash)
    names.set(hash, name)
  }

  const there = new Set(stored.map(([, hash]) => hash))
  let inserted = 0
  for (const [token, hash] of entries) {
    if ((await storage.tokens.insert(token, hash)) === 'inserted') inserted++
    else if (!there.has(hash)) throw new Failure(`the name ${token.name} was taken meanwhile: import again`)
    there.add(hash)
    if (token.lastUsedAt) await storage.tokens.markUsed(hash, token.lastUsedAt)
  }
  const alreadyThere = entries.length - inserted
  const rest = alreadyThere > 0 ? `, ${alreadyThere} already there` : ''
  print(output, { inserted, alreadyThere }, `${counted(inserted, 'token')} imported${rest}`)
}

type Entry = readonly [AccessToken, TokenHash]

async function readEntries(from: string): Promise<readonly Entry[]> {
  const entries: Entry[] = []
  let line = 0
  try {
    const source = from === '-' ? process.stdin : createReadStream(from)
    for await (const piece of wholeLines(source, lineBytesMaxDefault)) {
      if ('beginning' in piece) throw new Failure('it is longer than any token')
      for (const text of decode(piece).text.replace(/\n$/, '').split('\n')) {
        line++
        if (text.trim() !== '') entries.push(parseEntry(text))
      }
    }
    return entries
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall !== undefined) throw fileFailure(from, error)
    throw new Failure(`${from}: line ${line}: ${(error as Error).message} (nothing was imported)`)
  }
}

/** @throws Error that names every fault */
function parseEntry(text: string): Entry {
  const { name, hash, scopes, createdAt, expiresAt, lastUsedAt, ...unknown } = (parseJsonRecord(text) ??
    {}) as Record<string, unknown>
  const faults = [
    ...Object.keys(unknown).map(member => `${member} is unknown`),
    !(typeof name === 'string' && isTokenName(name)) && 'name must name a token',
    !(typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash)) && 'hash must be a SHA-256 in hexadecimal',
    !isScopes(scopes) && 'scopes must be a list of scopes',
    !isMoment(createdAt) && 'createdAt must be a time',
    !(expiresAt === null || isMoment(expiresAt)) && 'expiresAt must be a time or null',
    !(lastUsedAt === null || isMoment(lastUsedAt)) && 'lastUsedAt must be a time or null',
  ].filter(fault => fault !== false)
  if (faults.length > 0) throw new Error(faults.join('; '))
  const token: AccessToken = {
    name: name as string,
    scopes: scopes as Scope[],
    createdAt: new Date(createdAt as string),
    ...(expiresAt !== null && { expiresAt: new Date(expiresAt as string) }),
    ...(lastUsedAt !== null && { lastUsedAt: new Date(lastUsedAt as string) }),
  }
  return [token, hash as TokenHash]
}

function isScopes(value: unknown): boolean {
  return Array.isArray(value) && value.every(each => (scopes as readonly unknown[]).includes(each))
}

/** As `toISOString` writes it, and nothing else. */
function isMoment(value: unknown): boolean {
  return (
    typeof value === 'string' && !Number.isNaN(Date.parse(value)) && new Date(value).toISOString() === value
  )
}
