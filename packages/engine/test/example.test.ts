import { readFileSync } from 'node:fs'
import { storesOf } from '@plant-store/engine'
import { expect, test } from 'vitest'
import { notes } from './example.ts'
import { databases, makePlace } from './places.ts'

function textOf(file: string): string {
  return readFileSync(new URL(file, import.meta.url), 'utf8')
}

test('the example of the README is the one that is tested', () => {
  expect(textOf('../README.md')).toContain(`\`\`\`ts\n${textOf('example.ts')}\`\`\``)
})

test.each(databases)('the example works on %s', async database => {
  const { url } = await makePlace(database)
  await using storage = await storesOf({ notes }).openStorage({ url })

  await storage.notes.add({ id: 1n, text: 'first' })

  expect(await storage.notes.find(1n)).toEqual([{ text: 'first' }])
  expect(await storage.notes.find(2n)).toEqual([])
})
