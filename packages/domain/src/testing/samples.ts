import { int64Max, int64Min } from '../values.ts'

/**
 * Ids at which a 53-bit, 32-bit, unsigned or textual representation fails, in numeric
 * order.
 */
export const edgeIds = [
  int64Min,
  int64Min + 1n,
  -9_007_199_254_740_993n,
  -2_147_483_649n,
  -10n,
  -9n,
  -1n,
  0n,
  1n,
  9n,
  10n,
  2_147_483_648n,
  4_294_967_296n,
  9_007_199_254_740_991n,
  9_007_199_254_740_992n,
  9_007_199_254_740_993n,
  9_007_199_254_740_994n,
  int64Max - 1n,
  int64Max,
]

export const texts = [
  '',
  ' ',
  '  leading and trailing\t\n',
  'Übergrößenträger',
  'e\u0301 is not \u00e9',
  '\u{1f331}\u{1f468}\u200d\u{1f33e} 𠮷 \u{10ffff}',
  '\u0001\u001f\u007f\u0085\u2028\u2029\ufeff\ufffd\uffff',
  'אבג \u202e العربية ไทย 漢字',
  `'; DROP TABLE plants; -- %_\\"`,
  'null',
  '0',
  'x'.repeat(100_000),
]
