import { existsSync, symlinkSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { refuseStore, writeOutput } from '../src/files/output-file.ts'

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

  test('is not the store or part of it', () => {
    const folder = temporaryFolder()
    const url = `file:${join(folder, 'store.db')}`
    for (const name of ['store.db', 'store.db-wal', './store.db-shm']) {
      expect(() => refuseStore(`${folder}/${name}`, url), name).toThrow(
        'is the store itself',
      )
    }
    const [link, other] = [join(folder, 'link.db'), join(folder, 'other-wal')]
    symlinkSync('store.db', link)
    symlinkSync('store.db-wal', other)
    for (const name of ['store.db', 'store.db-wal', 'other-wal']) {
      expect(() => refuseStore(`${folder}/${name}`, `file:${link}`), name).toThrow(
        'is the store itself',
      )
    }
    refuseStore(join(folder, 'other.db'), url)
    refuseStore(join(folder, 'store.db'), 'postgres://a@localhost/b')
    expect(existsSync(join(folder, 'store.db'))).toBe(false)
  })
})
