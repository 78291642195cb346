import { existsSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { refuseStore, writeOutput } from '../src/files/output-file.ts'

describe('a file that is written', () => {
  test('is complete, and not replaced unless forced', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'file')
    await writeOutput(file, false, Readable.from(['a', 'b']))
    expect(readFileSync(file, 'utf8')).toBe('ab')
    expect(statSync(file).mode & 0o777).toBe(0o666 & ~process.umask())
    await expect(writeOutput(file, false, Readable.from(['c']))).rejects.toThrow(
      `${file} already exists: use --force`,
    )
    expect(readFileSync(file, 'utf8')).toBe('ab')
    await writeOutput(file, true, Readable.from(['c']))
    expect(readFileSync(file, 'utf8')).toBe('c')
    expect(readdirSync(folder)).toEqual(['file'])
  })

  test('is not there if its content fails, and the error is that of the content', async () => {
    const folder = temporaryFolder()
    const broken = new Error('broken')
    async function* failing() {
      yield 'a'
      throw broken
    }
    // A file that was still being opened appeared afterwards, half of the times.
    for (let time = 0; time < 20; time++) {
      await expect(writeOutput(join(folder, 'file'), false, failing())).rejects.toBe(broken)
      expect(await readdir(folder)).toEqual([])
    }
  })

  test('is not the store or part of it', () => {
    const folder = temporaryFolder()
    const url = `file:${join(folder, 'store.db')}`
    for (const name of ['store.db', 'store.db-wal', './store.db-shm'])
      expect(() => refuseStore(`${folder}/${name}`, url)).toThrow('is the store itself')
    const [link, other] = [join(folder, 'link.db'), join(folder, 'other-wal')]
    symlinkSync('store.db', link)
    symlinkSync('store.db-wal', other)
    for (const name of ['store.db', 'store.db-wal', 'other-wal'])
      expect(() => refuseStore(`${folder}/${name}`, `file:${link}`), name).toThrow('is the store itself')
    refuseStore(join(folder, 'other.db'), url)
    refuseStore(join(folder, 'store.db'), 'postgres://a@localhost/b')
    expect(existsSync(join(folder, 'store.db'))).toBe(false)
  })
})
