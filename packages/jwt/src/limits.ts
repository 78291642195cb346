const defaults = {
  /** Between the provider's clock and ours. */
  clockSkewMs: 30_000,
  tokenBytesMax: 8 * 1024,
  rememberedTokensMax: 1000,
  /** The age at which the keys are refreshed in the background. */
  refreshAfterMs: 300_000,
  /** The least time between two fetches for tokens with unknown keys, and after a fetch that failed. */
  cooldownMs: 5000,
  /** The age up to which keys are used while the provider does not answer. */
  staleMaxMs: 3_600_000,
  fetchTimeoutMs: 5000,
  keySetBytesMax: 256 * 1024,
  keysMax: 100,
}

export type JwtLimits = Readonly<typeof defaults>
export const defaultJwtLimits: JwtLimits = defaults
