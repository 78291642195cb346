const defaults = {
  /** Between the provider's clock and ours. */
  clockSkewMs: 30_000,
  tokenBytesMax: 8 * 1024,
  rememberedTokensMax: 1000,
  /** The age at which the keys are refreshed in the background. */
  refreshAfterMs: 300_000,
  /** The least time between two fetches, whatever tokens arrive. */
  cooldownMs: 5000,
  /** The age up to which keys are used while the provider does not answer. */
  staleMaxMs: 3_600_000,
  fetchTimeoutMs: 5000,
  keySetBytesMax: 256 * 1024,
}

export type JwtLimits = Readonly<typeof defaults>
export const defaultJwtLimits: JwtLimits = defaults
