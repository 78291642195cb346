/** The entities, each of which has the scopes `…:read` and `…:write`. */
const entityNames = ['plants'] as const

type EntityScope<Access extends string> = `${(typeof entityNames)[number]}:${Access}`

/** A right that an operation requires and a token grants. */
export type Scope = EntityScope<'read' | 'write'> | 'metrics:read'

/** The scopes that a token grants together, for every entity. `write` includes `read`. */
export const scopesByChoice: Readonly<
  Record<'read' | 'write' | 'metrics', readonly Scope[]>
> = {
  read: entityNames.map(entity => `${entity}:read` as const),
  write: entityNames.flatMap(entity => [`${entity}:read`, `${entity}:write`] as const),
  metrics: ['metrics:read'],
}

export const scopes: readonly Scope[] = [
  ...scopesByChoice.write,
  ...scopesByChoice.metrics,
]
