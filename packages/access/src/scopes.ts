/** A right that an operation requires and a token grants. */
export type Scope = 'plants:read' | 'plants:write' | 'metrics:read'

/** The scopes that a token grants together. `write` includes `read`. */
export const scopesByChoice: Readonly<
  Record<'read' | 'write' | 'metrics', readonly Scope[]>
> = {
  read: ['plants:read'],
  write: ['plants:read', 'plants:write'],
  metrics: ['metrics:read'],
}

export const scopes: readonly Scope[] = [
  ...scopesByChoice.write,
  ...scopesByChoice.metrics,
]
