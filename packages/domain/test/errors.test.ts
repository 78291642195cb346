import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { runInNewContext } from 'node:vm'
import { DomainError, isDomainError } from '@plant-store/domain'
import { expect, test } from 'vitest'

test('an error of another copy, even in another realm, is a DomainError', async () => {
  const source = await readFile(new URL('../src/errors.ts', import.meta.url), 'utf8')
  const code = stripTypeScriptTypes(source)
  const other = runInNewContext(
    `${code.replace(/^export /gm, '')}\nnew DomainError('id-taken', 'taken')`,
  )
  expect([other instanceof DomainError, other instanceof Error]).toEqual([false, false])
  expect(isDomainError(other)).toBe(true)
})

test.each([
  undefined,
  null,
  'id-taken',
  {},
  new Error('id-taken'),
  { name: 'DomainError', code: 'id-taken' },
  structuredClone(new DomainError('id-taken', 'taken')),
])('%o is no DomainError', other => {
  expect(isDomainError(other)).toBe(false)
})

test('an error of this copy is a DomainError, and says what it is', () => {
  const error = new DomainError('id-taken', 'taken')
  expect(isDomainError(error)).toBe(true)
  expect(`${error}`).toBe('DomainError: taken')
})

test('an error has the cause that it was given', () => {
  const cause = new Error('the disk is full')
  const error = new DomainError('store-unavailable', 'the store is failing', { cause })

  expect(error.cause).toBe(cause)
})
