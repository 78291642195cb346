import { expect, test } from 'vitest'
import { describeChange } from '../src/change.ts'

const code = `function first(list) {
    if (list.length > 1 + 1)
        return 'many';
    for (const item of list) {
        return item;
    }
}`

/** The change of the text from `from` to `to`, both included. */
function change(from: string, to: string, replacement: string): string {
  const place = (at: number) => {
    const before = code.slice(0, at).split('\n')
    return { line: before.length, column: (before.at(-1) ?? '').length + 1 }
  }
  const start = code.indexOf(from)
  const location = { start: place(start), end: place(code.indexOf(to, start) + to.length) }
  return describeChange(code, { location, replacement })
}

test.each([
  [change('list.length', '1 + 1', 'list.length >= 1 + 1'), 'if (list.length «> → >=» 1 + 1)'],
  [change('list.length', '1 + 1', 'true'), 'if («list.length > 1 + 1 → true»)'],
  [change("'many'", "'many'", '""'), `return «'many' → ""»;`],
  [change('{\n        return', '}', '{}'), 'for (const item of list) «{ return item; } → {}»'],
])('%s', (described, expected) => {
  expect(described).toBe(expected)
})

test('a long text is cut in the middle', () => {
  const long = `${'a'.repeat(100)} ${'b'.repeat(100)}`
  const location = { start: { line: 1, column: 1 }, end: { line: 1, column: long.length + 1 } }
  const described = `«${'a'.repeat(60)} … ${'b'.repeat(60)} → c»`
  expect(describeChange(long, { location, replacement: 'c' })).toBe(described)
})
