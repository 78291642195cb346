import { Command } from '@commander-js/extra-typings'
import { type AccessToken, isTokenName, type Scope, scopes, type TokenHash } from '@plant-store/access'
import { parseJsonRecord } from '@plant-store/json'
import { openStorage } from '@plant-store/persistence'
import { Failure } from '../failure.ts'
import { openInput } from '../files/input-file.ts'
import { forceOption, refuseStore, writeOutput } from '../files/output-file.ts'
import { lineBytesMaxDefault, wholeLines } from '../formats/lines.ts'
import { readJsonLines } from '../formats/ndjson.ts'
import { existingStoreUrl, storeUrl } from '../store-in-environment.ts'
import { counted, jsonOption, print } from '../terminal/output.ts'
import { toJson } from './tokens.ts'

export const exportTokens = new Command('export')
  .description('Write all tokens as NDJSON (SHA-256, never the token), to move them to another store.')
  .argument('[file]', 'to write (by default standard output)', '-')
  .addOption(forceOption)
  .option('--json', 'print JSON, on standard error if the tokens go to standard output')
  .action(async (file, { force, json }) => {
    const url = existingStoreUrl()
    if (file !== '-') refuseStore(file, url)
    await using storage = await openStorage({ url })
    const entries = await storage.tokens.entries()
    const lines = entries.map(([token, hash]) => `${JSON.stringify({ ...toJson(token), hash })}\n`)
    await writeOutput(file, { force, mode: 0o600 }, lines)
    const result = { exported: entries.length, file: file === '-' ? null : file }
    print({ json, file }, result, `${counted(entries.length, 'token')} exported`)
  })

export const importTokens = new Command('import')
  .description(
    'Import tokens from another store, all or none. Tokens revoked since the export are valid again.',
  )
  .argument('<file>', 'to read; - for standard input')
  .addOption(jsonOption)
  .action(async (file, output) => {
    const entries = await readEntries(file)
    await using storage = await openStorage({ url: storeUrl() })
    const stored = await storage.tokens.entries()
    const hashes = new Map<string, TokenHash>()
    const names = new Map<TokenHash, string>()
    for (const [{ name }, hash] of [...stored, ...entries]) {
      if ((hashes.get(name) ?? hash) !== hash || (names.get(hash) ?? name) !== name) {
        throw new Failure(
          `${file}: the name ${name} or its token is already in use: revoke the other token first (nothing was imported)`,
        )
      }
      hashes.set(name, hash)
      names.set(hash, name)
    }

    const there = new Set(stored.map(([, hash]) => hash))
    let inserted = 0
    for (const [token, hash] of entries) {
      if ((await storage.tokens.insert(token, hash)) === 'inserted') inserted++
      else if (!there.has(hash))
        throw new Failure(`the name ${token.name} was taken during the import: import again`)
      there.add(hash)
      if (token.lastUsedAt) await storage.tokens.markUsed(hash, token.lastUsedAt)
    }
    const alreadyThere = entries.length - inserted
    const rest = alreadyThere > 0 ? `, ${alreadyThere} already stored` : ''
    print(output, { inserted, alreadyThere }, `${counted(inserted, 'token')} imported${rest}`)
  })

type TokenEntry = readonly [AccessToken, TokenHash]

async function readEntries(from: string): Promise<readonly TokenEntry[]> {
  const { chunks } = await openInput(from)
  const lines = wholeLines(chunks, lineBytesMaxDefault)
  const tokens: TokenEntry[] = []
  for await (const entries of readJsonLines(lines, lineBytesMaxDefault, parseEntry)) {
    for (const entry of entries) {
      if ('value' in entry) tokens.push(entry.value)
      else throw new Failure(`${from}: line ${entry.line}: ${entry.reason} (nothing was imported)`)
    }
  }
  return tokens
}

/** @throws Error that names every fault */
function parseEntry(text: string): TokenEntry {
  const { name, hash, scopes, createdAt, expiresAt, lastUsedAt, ...unknown } = (parseJsonRecord(text) ??
    {}) as Record<string, unknown>
  const faults = [
    ...Object.keys(unknown).map(member => `${member} is unknown`),
    !(typeof name === 'string' && isTokenName(name)) && 'name must be the name of a token',
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

/** Returns whether the value is a time exactly as `toISOString` writes it. */
function isMoment(value: unknown): boolean {
  return (
    typeof value === 'string' && !Number.isNaN(Date.parse(value)) && new Date(value).toISOString() === value
  )
}
