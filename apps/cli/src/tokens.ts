import { type AccessToken, hashToken, mintToken, type Scope } from '@plant-store/access'
import { openStorage } from '@plant-store/persistence'
import { Failure } from './failure.ts'
import { type Output, print } from './output.ts'

/** What a token can be made for; who may change plants may also read them. */
export const grants = {
  read: ['plants:read'],
  write: ['plants:read', 'plants:write'],
  metrics: ['metrics:read'],
} as const satisfies Record<string, readonly Scope[]>
export type Grant = keyof typeof grants

export interface TokenRequest {
  readonly name: string
  readonly scope: readonly Grant[]
  readonly expires?: Date
}

/** Prints the token and nothing else: it can't be had again. */
export async function createToken(url: string, request: TokenRequest, output: Output): Promise<void> {
  await using storage = await openStorage({ url })
  const text = mintToken()
  const token: AccessToken = {
    name: request.name,
    scopes: [...new Set(request.scope.flatMap(grant => grants[grant]))],
    createdAt: new Date(),
    ...(request.expires && { expiresAt: request.expires }),
  }
  if ((await storage.tokens.insert(token, hashToken(text))) === 'name-taken') {
    throw new Failure(`there is already a token named ${request.name}: revoke it, or take another name`)
  }
  print(output, { token: text, ...toJson(token) }, text)
}

export async function listTokens(url: string, output: Output): Promise<void> {
  await using storage = await openStorage({ url, mustExist: true })
  const tokens = await storage.tokens.list()
  print(output, tokens.map(toJson), tokens.length === 0 ? 'There is no token.' : table(tokens))
}

export async function revokeToken(url: string, name: string, output: Output): Promise<void> {
  await using storage = await openStorage({ url, mustExist: true })
  if (!(await storage.tokens.remove(name))) throw new Failure(`there is no token named ${name}`)
  print(output, { revoked: name }, `${name} is revoked; servers refuse it within 5 s.`)
}

export function toJson({ name, scopes, createdAt, expiresAt, lastUsedAt }: AccessToken) {
  return { name, scopes, createdAt, expiresAt: expiresAt ?? null, lastUsedAt: lastUsedAt ?? null }
}

function table(tokens: readonly AccessToken[]): string {
  const rows = [
    ['NAME', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED'],
    ...tokens.map(({ name, scopes, createdAt, expiresAt, lastUsedAt }) => [
      name,
      scopes.join(' '),
      minute(createdAt),
      expiresAt === undefined
        ? 'never'
        : `${minute(expiresAt)}${expiresAt <= new Date() ? ' (expired)' : ''}`,
      lastUsedAt === undefined ? 'never' : minute(lastUsedAt),
    ]),
  ]
  const widths = rows.reduce(
    (widest, row) => row.map((cell, n) => Math.max(cell.length, widest[n] ?? 0)),
    [0],
  )
  return rows
    .map(row =>
      row
        .map((cell, n) => cell.padEnd(widths[n] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** In UTC, as the logs are. */
function minute(date: Date): string {
  return `${date.toISOString().slice(0, 16).replace('T', ' ')}Z`
}
