import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { type AccessToken, hashToken, isTokenName, mintToken, type Scope } from '@plant-store/access'
import { Failure } from '../failure.ts'
import { changeStore, openStore, readStore, storeUrl } from '../store-in-environment.ts'
import { jsonOption, minute, print, table } from '../terminal/output.ts'

/** The choices of `--scope`. Writing includes reading. */
const scopesByChoice = new Map<string, readonly Scope[]>([
  ['read', ['plants:read']],
  ['write', ['plants:read', 'plants:write']],
  ['metrics', ['metrics:read']],
])

export const createToken = new Command('create')
  .description('Create a token and print it, only this once: the store keeps its SHA-256.')
  .requiredOption('--name <name>', 'the name of its holder, for lists and logs', tokenName)
  .addOption(
    new Option(
      '--scope <scope>',
      'what it allows (repeatable): read, write (includes read), metrics (by default write)',
    ).argParser(grantedScopes),
  )
  .option('--expires <time>', 'after which it is invalid: 30min, 12h, 90d, 52w (by default never)', fromNow)
  .addOption(jsonOption)
  .action(async ({ name, scope = grantedScopes('write'), expires, json }) => {
    await using storage = await openStore({ url: storeUrl() })
    const secret = mintToken()
    const scopes = [...new Set(scope)]
    const token: AccessToken = {
      name,
      scopes,
      createdAt: new Date(),
      ...(expires && { expiresAt: expires }),
    }
    if ((await storage.tokens.insert(token, hashToken(secret))) === 'name-taken') {
      throw new Failure(`a token named ${name} already exists: revoke it, or choose another name`)
    }
    print({ json }, { token: secret, ...toJson(token) }, secret)
    // On standard error, so that a script receives only the token.
    const until = expires ? `expires at ${minute(expires)}` : 'never expires'
    if (!json) process.stderr.write(`The token of ${name} grants ${scopes.join(' and ')}, and ${until}.\n`)
  })

export const listTokens = new Command('list')
  .description('List the tokens: name, scopes, created, expires, last used (to the minute). Never the token.')
  .addOption(jsonOption)
  .action(async output => {
    await using store = await readStore()
    const tokens = await store.tokens.list()
    const rows = tokens.map(({ name, scopes, createdAt, expiresAt, lastUsedAt }) => [
      name,
      scopes.join(' '),
      minute(createdAt),
      expiresAt ? `${minute(expiresAt)}${expiresAt <= new Date() ? ' (expired)' : ''}` : 'never',
      lastUsedAt ? minute(lastUsedAt) : 'never',
    ])
    const head = ['NAME', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED']
    print(output, tokens.map(toJson), rows.length === 0 ? 'There are no tokens.' : table([head, ...rows]))
  })

export const revokeToken = new Command('revoke')
  .description('Revoke a token. Servers refuse it within 5 seconds.')
  .argument('<name>', 'of the token')
  .addOption(jsonOption)
  .action(async (name, output) => {
    await using storage = await changeStore()
    if (!(await storage.tokens.remove(name))) throw new Failure(`there is no token named ${name}`)
    print(output, { revoked: name }, `${name} is revoked; servers refuse it within 5 s.`)
  })

function tokenName(text: string): string {
  if (isTokenName(text)) return text
  throw new InvalidArgumentError('It must be 1 to 100 characters on one line, without spaces at the ends.')
}

function grantedScopes(text: string, before: readonly Scope[] = []): readonly Scope[] {
  const granted = scopesByChoice.get(text)
  if (granted) return [...before, ...granted]
  throw new InvalidArgumentError(`It must be one of ${[...scopesByChoice.keys()].join(', ')}.`)
}

function fromNow(text: string): Date {
  return new Date(Date.now() + durationMs(text))
}

const unitSeconds = { s: 1, min: 60, h: 3600, d: 86_400, w: 604_800 }

export function durationMs(text: string): number {
  const [, count, unit = 's'] = /^([1-9]\d{0,5})(s|min|h|d|w)$/.exec(text) ?? []
  const seconds = Number(count) * unitSeconds[unit as keyof typeof unitSeconds]
  if (!Number.isNaN(seconds)) return seconds * 1000
  throw new InvalidArgumentError('It must be a time from now, such as 30min, 12h, 90d or 52w.')
}

function toJson({ name, scopes, createdAt, expiresAt, lastUsedAt }: AccessToken) {
  return { name, scopes, createdAt, expiresAt: expiresAt ?? null, lastUsedAt: lastUsedAt ?? null }
}
