import { Command, InvalidArgumentError } from '@commander-js/extra-typings'
import {
  type AccessToken,
  hashToken,
  isExpired,
  isTokenName,
  mintToken,
  type Scope,
  scopesByChoice,
} from '@plant-store/access'
import { amount, unitMs } from '@plant-store/api/units'
import { CommandError } from '../command-error.ts'
import { argument, jsonOption } from '../options.ts'
import { print, printSecret, table } from '../output.ts'
import { changeStore, readStore } from '../store-in-environment.ts'
import { listed, minute } from '../words.ts'

const createToken = new Command('create')
  .description(
    'Create a token and print it, only this once: the store keeps its SHA-256.',
  )
  .requiredOption(
    '--name <name>',
    'the name of its holder, for lists and logs',
    tokenName,
  )
  .option(
    '--scope <scope>',
    'what it allows (repeatable): read, write (includes read), metrics, or of one entity, such as plants:read (by default write)',
    grantedScopes,
  )
  .option(
    '--expires <time>',
    'after which it is invalid: 30min, 12h, 90d, 52w (by default never)',
    fromNow,
  )
  .addOption(jsonOption)
  .action(async ({ name, scope = scopesByChoice.write, expires: expiresAt, json }) => {
    await using storage = await changeStore()
    const secret = mintToken()
    const scopes = [...new Set(scope)]
    const token = { name, scopes, createdAt: new Date(), ...(expiresAt && { expiresAt }) }
    const outcome = await storage.tokens.insert(token, hashToken(secret))
    if (outcome === 'name-taken') {
      throw new CommandError(
        `a token named ${name} already exists: choose another name, or revoke it with plant-store token revoke`,
      )
    }
    const result = { token: secret, ...toJson(token) }
    await printSecret({ json }, result, secret, () => storage.tokens.remove(name))
    // Write this to standard error, so that a script receives only the token.
    if (!json) {
      const ending = expiresAt ? `expires at ${minute(expiresAt)}` : 'never expires'
      process.stderr.write(
        `The token of ${name} grants ${listed(scopes)}, and ${ending}.\n`,
      )
    }
  })

const listTokens = new Command('list')
  .description(
    'List the tokens: name, scopes, created, expires, last used (to the minute). Never the token.',
  )
  .addOption(jsonOption)
  .action(async output => {
    await using store = await readStore()
    const tokens = await store.tokens.list()
    const rows = tokens.map(token => ({
      NAME: token.name,
      SCOPES: token.scopes.join(' '),
      CREATED: minute(token.createdAt),
      EXPIRES: describeExpiry(token),
      'LAST USED': minute(token.lastUsedAt, 'never'),
    }))
    await print(output, tokens.map(toJson), table(rows, 'There are no tokens.'))
  })

const revokeToken = new Command('revoke')
  .description('Revoke a token. Servers refuse it within 5 seconds.')
  .argument('<name>', 'of the token')
  .addOption(jsonOption)
  .action(async (name, output) => {
    await using storage = await changeStore()
    const wasStored = await storage.tokens.remove(name)
    if (!wasStored) {
      throw new CommandError(`there is no token named ${name}`)
    }
    await print(
      output,
      { revoked: name },
      `${name} is revoked; servers refuse it within 5 s.`,
    )
  })

export const token = new Command('token')
  .description('Create, list and revoke access tokens.')
  .addCommand(createToken)
  .addCommand(listTokens)
  .addCommand(revokeToken)

function describeExpiry(token: AccessToken) {
  const ending = isExpired(token) ? ' (expired)' : ''
  return minute(token.expiresAt, 'never') + ending
}

function tokenName(text: string) {
  if (isTokenName(text)) {
    return text
  }
  throw new InvalidArgumentError(
    'It must be 1 to 100 characters on one line, without spaces at the ends.',
  )
}

/**
 * The choices of --scope, with the scopes of each. The scope to write an entity
 * includes the one to read it.
 */
const choices = new Map<string, readonly Scope[]>(Object.entries(scopesByChoice))
for (const scope of scopesByChoice.write) {
  const reading = scope.replace(':write', ':read')
  const granted = scopesByChoice.write.filter(each => each === reading || each === scope)
  choices.set(scope, granted)
}

export function grantedScopes(
  text: string,
  before: readonly Scope[] = [],
): readonly Scope[] {
  const granted = choices.get(text)
  if (granted !== undefined) {
    return [...before, ...granted]
  }
  throw new InvalidArgumentError(`It must be one of ${[...choices.keys()].join(', ')}.`)
}

/** Up to a century, in milliseconds. */
const timeFromNow = argument(
  amount(unitMs, 1, 36_500 * unitMs.d, 'a time from now, such as 30min, 12h, 90d or 52w'),
)

export function fromNow(text: string): Date {
  return new Date(Date.now() + timeFromNow(text))
}

function toJson(token: AccessToken) {
  const { name, scopes, createdAt, expiresAt = null, lastUsedAt = null } = token
  return { name, scopes, createdAt, expiresAt, lastUsedAt }
}
