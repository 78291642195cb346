import { linkSync, symlinkSync, writeFileSync } from 'node:fs'
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
    for (let time = 0; time < 10; time++) {
      const writing = writeOutput(join(folder, 'file'), false, failing())
      await expect(writing, `time ${time}`).rejects.toBe(broken)
      expect(await readdir(folder), `time ${time}`).toEqual([])
    }
  })

  test.each(
    Object.entries({
      'store.db': true,
      './store.db-shm': true,
      'wal-link': true,
      'hard-link': true,
      'folder-link/store.db': true,
      other: false,
      none: false,
    }),
  )('is not the store as %s: %s', (name, isRefused) => {
    const folder = temporaryFolder()
    const path = (file: string) => `${folder}/${file}`
    writeFileSync(path('store.db'), '')
    writeFileSync(path('other'), '')
    symlinkSync('store.db', path('link.db'))
    symlinkSync('store.db-wal', path('wal-link'))
    linkSync(path('store.db'), path('hard-link'))
    symlinkSync(folder, path('folder-link'))

    const refuse = () => refuseStore(path(name), `file:${path('link.db')}`)

    const refusal = expect(refuse)
    const words = 'is the store itself'
    return isRefused ? refusal.toThrow(words) : refusal.not.toThrow()
  })

  test('is refused if the system does not say what the store is', () => {
    const loop = join(temporaryFolder(), 'loop')
    symlinkSync(loop, loop)

    expect(() => refuseStore('file', `file:${loop}`)).toThrow(
      `${loop}: its links lead in a circle`,
    )
  })
})
