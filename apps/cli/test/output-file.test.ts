import { linkSync, symlinkSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { isSameFile, refuseStore, writeOutput } from '../src/files/output-file.ts'

describe('a file that is written', () => {
  test('is not there if its content fails, whose error is thrown', async () => {
    const folder = temporaryFolder()
    const broken = new Error('broken')
    async function* failing() {
      yield 'a'
      throw broken
    }
    // A file that was still being opened appeared afterwards, half of the times.
    for (let time = 0; time < 20; time++) {
      const writing = writeOutput(join(folder, 'file'), false, failing())
      await expect(writing, `time ${time}`).rejects.toBe(broken)
      expect(await readdir(folder), `time ${time}`).toEqual([])
    }
  })

  test.each(['store.db', 'store.db-wal', './store.db-shm', 'other-wal'])(
    'is not the store as %s',
    name => {
      const folder = temporaryFolder()
      const link = join(folder, 'link.db')
      symlinkSync('store.db', link)
      symlinkSync('store.db-wal', join(folder, 'other-wal'))

      expect(() => refuseStore(`${folder}/${name}`, `file:${link}`)).toThrow(
        'is the store itself',
      )
    },
  )

  test('is none of a store on a server', () => {
    expect(refuseStore('store.db', 'postgres://a@localhost/b')).toBeUndefined()
  })
})

test.each([
  ['a', true],
  ['hard-link', true],
  ['link', true],
  ['folder/a', true],
  ['b', false],
  ['none', false],
])('%s is the file a: %s', (name, isSame) => {
  const folder = temporaryFolder()
  const path = (file: string) => `${folder}/${file}`
  writeFileSync(path('a'), '')
  writeFileSync(path('b'), '')
  linkSync(path('a'), path('hard-link'))
  symlinkSync('a', path('link'))
  symlinkSync(folder, path('folder'))

  expect(isSameFile(path('a'), path(name))).toBe(isSame)
})
