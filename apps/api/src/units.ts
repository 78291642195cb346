/** The units of a time in settings and options, in milliseconds. */
export const unitMs = {
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
} as const satisfies Readonly<Record<string, number>>
