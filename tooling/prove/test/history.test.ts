import { expect, test } from 'vitest'
import {
  History,
  isLinearizable,
  type Kind,
  type Operation,
  type Outcome,
} from '../src/history.ts'

/**
 * Reads operations on one plant such as `0-1 replaceIf b<a done`: called at 0 and
 * answered at 1, it was to write `b` in place of `a`. A read that is done names what it
 * saw.
 */
function operations(text: string): readonly Operation[] {
  return text.split('; ').map(each => {
    const [times = '', kind, ...rest] = each.split(' ')
    const [calledAt, answeredAt] = times.split('-').map(Number) as [number, number]
    const is = rest.pop() as Outcome['is']
    const [value, expected] = rest[0]?.split('<') ?? []
    const isRead = kind === 'read'
    const outcome = isRead && is === 'done' ? { is, seen: value as string } : { is }
    const written = isRead || !value ? undefined : value
    return {
      id: 1n,
      kind: kind as Kind,
      calledAt,
      answeredAt,
      outcome,
      written,
      expected: expected || undefined,
    }
  })
}

/** The value at the start, `-` for no plant, and what was observed. */
const rows = (text: string) =>
  text
    .trim()
    .split('\n')
    .map(row => row.trim().split(' | ') as [string, string])

const explained = rows(`
  - | 0-1 create a done; 2-3 read a done
  - | 0-1 create a done; 2-3 create b taken
  - | 0-10 replace a done; 1-9 replace b done; 11-12 read a done
  - | 0-10 replace a done; 1-9 replace b done; 11-12 read b done
  a | 5-6 replace b unknown; 7-8 read a done
  a | 5-6 replace b unknown; 7-8 read b done
  a | 5-6 replace b unknown; 7-8 read a done; 9-10 read b done
  a | 0-1 replace b refused; 2-3 read a done
  a | 0-1 replaceIf new<a done; 2-3 read new done
  b | 0-1 replaceIf new<a differs; 2-3 read b done
  - | 0-1 replaceIf new< done; 2-3 read new done
  a | 0-1 removeIf <a done
  - | 0-1 removeIf absent
`)
const unexplained = rows(`
  - | 0-1 create a done; 2-3 read absent
  - | 0-1 create a done; 2-3 create b done
  a | 0-1 create b done
  - | 0-10 replace a done; 1-9 replace b done; 11-12 read b done; 13-14 read a done
  - | 0-10 replace a done; 1-9 replace b done; 2-3 read b done; 4-5 read a done; 11-12 read b done
  a | 5-6 replace b unknown; 7-8 read b done; 9-10 read a done
  a | 5-6 replace b unknown; 3-4 read b done
  a | 0-1 remove unknown; 2-3 read c done
  a | 0-1 replace b refused; 2-3 read b done
  b | 0-1 replaceIf new<a done
  a | 0-1 replaceIf new<a differs; 2-3 read a done
  - | 0-1 replaceIf new< differs
  b | 0-1 replaceIf new<a unknown; 2-3 read new done
  a | 0-1 replaceIf x<a done; 0-9 replaceIf y<a done
  b | 0-1 removeIf <a done
  - | 0-1 removeIf done
  - | 0-1 removeIf differs
`)
test.each([
  ...explained.map(row => [...row, true] as const),
  ...unexplained.map(row => [...row, false] as const),
])('from %s: %s', (start, text, hasAnOrder) => {
  expect(isLinearizable(operations(text), start === '-' ? undefined : start)).toBe(
    hasAnOrder,
  )
})

test('a version that names two states of a plant is noticed', async () => {
  const history = new History()
  const see = (id: bigint, seen: string) =>
    history.perform({ id, kind: 'read' }, async () => ({
      is: 'done',
      seen,
      version: 'v',
    }))
  await see(1n, 'a')
  await see(1n, 'a')
  await see(2n, 'b')
  await expect(see(1n, 'b')).rejects.toThrow('version v of 1')
})
