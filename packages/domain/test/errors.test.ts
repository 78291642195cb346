import { DomainError } from '@plant-store/domain'
import { expect, test } from 'vitest'

test('a domain error has a code, a message, no faults of its own and the cause it was given', () => {
  const plain = new DomainError('store-busy', 'too much at once')
  expect(plain).toBeInstanceOf(Error)
  expect(plain).toMatchObject({
    name: 'DomainError',
    code: 'store-busy',
    message: 'too much at once',
    faults: [],
  })
  expect(Object.hasOwn(plain, 'cause')).toBe(false)

  const cause = new Error('disk')
  const faults = [{ field: 'name', problem: 'is required' }]
  expect(new DomainError('store-unavailable', 'x', { cause, faults })).toMatchObject({ cause, faults })
})
