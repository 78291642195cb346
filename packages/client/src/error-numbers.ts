/** The numbers of the store's errors that a caller can act on. A number never changes its meaning. */
export const errorNumbers = {
  'invalid-plant': 40002,
  'id-taken': 40003,
  'invalid-token': 40102,
  'insufficient-scope': 40301,
  'plant-not-found': 40402,
  'condition-failed': 41201,
  'body-too-large': 41301,
  'too-many-wrong-tokens': 42901,
  'store-busy': 50301,
  'store-unavailable': 50302,
  draining: 50303,
  'too-many-connections': 50304,
  'too-many-bytes': 50305,
  'access-unavailable': 50306,
} as const
