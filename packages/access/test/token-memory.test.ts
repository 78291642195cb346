import { createTokenMemory } from '@plant-store/access'
import { expect, test } from 'vitest'

test('beyond its maximum it forgets the token that was set longest ago', () => {
  const memory = createTokenMemory<number>(3)
  for (const [known, token] of [
    'first',
    'second',
    'first',
    'third',
    'fourth',
  ].entries()) {
    memory.set(token, known)
  }
  expect(['first', 'second', 'third', 'fourth'].map(memory.get)).toEqual([
    2,
    undefined,
    3,
    4,
  ])
  memory.delete('third')
  memory.set('fifth', 5)
  expect(['first', 'third', 'fourth', 'fifth'].map(memory.get)).toEqual([
    2,
    undefined,
    4,
    5,
  ])
})
