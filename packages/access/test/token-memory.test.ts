import { createTokenMemory } from '@plant-store/access'
import { expect, test } from 'vitest'

test('beyond its maximum it forgets the token that was set longest ago', () => {
  const memory = createTokenMemory<number>(3)
  memory.set('first', 0)
  memory.set('second', 1)
  memory.set('first', 2)
  memory.set('third', 3)

  memory.set('fourth', 4)

  const known = ['first', 'second', 'third', 'fourth'].map(memory.get)
  expect(known).toEqual([2, undefined, 3, 4])
})

test('a deleted token makes room for another', () => {
  const memory = createTokenMemory<number>(2)
  memory.set('first', 0)
  memory.set('second', 1)

  memory.delete('second')
  memory.set('third', 2)

  expect(['first', 'second', 'third'].map(memory.get)).toEqual([0, undefined, 2])
})
