import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { proseFaults } from '../src/plain-english.ts'

const root = join(import.meta.dirname, '../../..')
const words = (count: number) => Array.from({ length: count }, () => 'word').join(' ')

/** Returns the faults of the comments in a TypeScript source, and the avoided phrases in its texts. */
function sourceFaults(source: string): readonly string[] {
  const comments = [...source.matchAll(/^ *\/\*\*[\s\S]*?\*\/|(?:^ *\/\/[^\n]*\n)+/gm)].flatMap(([comment]) =>
    comment
      .replaceAll(/^ *(?:\/\*\*|\/\/|\*(?!\/))|\*\/$/gm, '')
      .split(/\n\s*\n|^(?=\s*@)/m)
      .flatMap(faultsOf),
  )
  const texts = [...source.matchAll(/'[^'\n]+'|`[^`]+`/g)].flatMap(([text]) => faultsOf(text))
  return [...comments, ...texts.filter(fault => fault.startsWith('avoid'))]
}

function faultsOf(text: string): readonly string[] {
  const prose = text.replaceAll(/\s+/g, ' ').trim()
  return proseFaults(prose).map(({ detail }) => `${detail}: ${prose}`)
}

test.each([
  ['a comment', '/** Is on\n * its own. */'],
  ['a line comment', '  // It can\n  // not be.\n'],
  ['a message', "throw new Error('cannot tell, but it tells')"],
  ['a long sentence', `/** ${words(20)}\n * ${words(16)}. */`],
])('%s with a fault is found', (_, source) => {
  expect(sourceFaults(source)).toHaveLength(1)
})

test('a sound comment is not', () => {
  expect(sourceFaults(`/**\n * ${words(20)}\n *\n * ${words(20)}\n * @throws ${words(20)}\n */`)).toEqual([])
})

test('comments and messages of the sources are plain English', () => {
  const exclude = (path: string) => /(^|\/)(node_modules|dist)$/.test(path)
  const sources = globSync('{apps,packages,tooling}/*/src/**/*.ts', { cwd: root, exclude })
    .map(path => path.replaceAll('\\', '/'))
    .filter(path => !path.endsWith('/plain-english.ts'))
  expect(sources.length).toBeGreaterThan(150)
  const faults = sources.flatMap(path =>
    sourceFaults(readFileSync(join(root, path), 'utf8')).map(fault => `${path}: ${fault}`),
  )
  expect(faults).toEqual([])
})
