const defaults = {
  /** For the provider's clock to differ from ours. */
  clockSkewMs: 30_000,
  tokenBytesMax: 8 * 1024,
  rememberedTokensMax: 1000,
  /** The keys are fetched again once they are as old, beside the requests. */
  refreshAfterMs: 300_000,
  /** The shortest time between two fetches, whatever tokens arrive. */
  cooldownMs: 5000,
  /** While the provider does not answer, keys are used until they are as old. */
  staleMaxMs: 3_600_000,
  fetchTimeoutMs: 5000,
  keySetBytesMax: 256 * 1024,
}

export type JwtLimits = Readonly<typeof defaults>
export const defaultJwtLimits: JwtLimits = defaults
