/** What a token may be used for. */
export const scopes = ['plants:read', 'plants:write', 'metrics:read'] as const
export type Scope = (typeof scopes)[number]
