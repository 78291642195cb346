import { parseRetryAfter } from '@plant-store/webhooks'
import { expect, test } from 'vitest'

const nowMs = Date.UTC(2030, 0, 1, 12)

test.each([
  ['seconds', '120', 120_000],
  ['no seconds', '0', 0],
  ['a date', 'Tue, 01 Jan 2030 12:00:30 GMT', 30_000],
  ['a date of RFC 850', 'Tuesday, 01-Jan-30 12:00:30 GMT', 30_000],
  ['a date of C', 'Tue Jan  1 12:00:30 2030 GMT', 30_000],
  ['a date in the past', 'Tue, 01 Jan 2030 11:00:00 GMT', 0],
  ['nothing', undefined, undefined],
  ['an empty text', '', undefined],
  ['less than nothing', '-5', undefined],
  ['a fraction', '1.5', undefined],
  ['a unit', '5s', undefined],
  ['words', 'later', undefined],
  ['a date without a time', 'Tue, 01 Jan 2030', undefined],
])('a Retry-After of %s: %s', (_, field, ms) => {
  expect(parseRetryAfter(field, nowMs)).toBe(ms)
})
