import { existsSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { defaultStoreUrl } from '@plant-store/persistence'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { advise, onInterrupt } from '../src/failure.ts'
import { refuseStore, writeOutput } from '../src/files/output-file.ts'
import { storeUrl } from '../src/store-in-environment.ts'
import { showProgress } from '../src/terminal.ts'
import { keepSignalListeners } from './place.ts'

// What the commands share and what needs no process.

afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

test.each([undefined, ''])('the store is that of the server if DATABASE_URL is %j', url => {
  vi.stubEnv('DATABASE_URL', url)
  expect(storeUrl()).toBe(defaultStoreUrl)
})

test('only an error of a damaged store comes with advice', () => {
  const damage = Object.assign(new Error('it is damaged'), { code: 'SQLITE_CORRUPT' })
  const other = new Error('the disk is full')
  expect(() => advise(damage)).toThrow(/^it is damaged: restore a backup, or .* export --damaged$/)
  expect(() => advise(damage, 'use an older one')).toThrow(/^it is damaged: use an older one$/)
  expect(() => advise(other)).toThrow(other)
})

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'the first %s asks the work to end, and the second one ends the process',
  name => {
    using _listeners = keepSignalListeners()
    const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never)
    const signal = onInterrupt()
    expect(signal.aborted).toBe(false)
    process.emit(name)
    expect(signal.reason).toMatchObject({ message: 'interrupted', exitCode: 130 })
    expect(exit).not.toHaveBeenCalled()
    process.emit(name)
    expect(exit).toHaveBeenCalledExactlyOnceWith(130)
  },
)

describe('a file that is written', () => {
  test('is complete, and not replaced unless forced', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'file')
    await writeOutput(file, {}, Readable.from(['a', 'b']))
    expect(readFileSync(file, 'utf8')).toBe('ab')
    expect(statSync(file).mode & 0o777).toBe(0o666 & ~process.umask())
    await expect(writeOutput(file, {}, Readable.from(['c']))).rejects.toThrow(
      `${file} already exists: use --force`,
    )
    expect(readFileSync(file, 'utf8')).toBe('ab')
    await writeOutput(file, { force: true }, Readable.from(['c']))
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
      await expect(writeOutput(join(folder, 'file'), {}, failing())).rejects.toBe(broken)
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

describe('progress', () => {
  const [hidesCursor, showsCursor, clearsLine] = ['\u001B[?25l', '\u001B[?25h', '\u001B[2K']

  /** A terminal, and what it was sent since it was last looked at. */
  function terminal(isTTY: boolean) {
    let text = ''
    const write = (chunk: Buffer, _: string, done: () => void) => {
      text += chunk
      done()
    }
    const stream = Object.assign(new Writable({ write }), { isTTY, columns: 120 })
    vi.spyOn(process, 'stderr', 'get').mockReturnValue(stream as never)
    return () => {
      const shown = text
      text = ''
      return shown
    }
  }

  test('is shown on a terminal only, and only if it is asked for', async () => {
    for (const [isTTY, isShown] of [
      [false, true],
      [true, false],
    ] as const) {
      const shown = terminal(isTTY)
      using progress = await showProgress('plant', isShown)
      progress.update(1, 1, 2)
      expect(shown()).toBe('')
    }
  })

  test('is a bar with words, and the words alone if the total is unknown', async () => {
    const shown = terminal(true)
    const words = () => stripVTControlCharacters(shown())
    const signals = process.listenerCount('SIGINT')
    {
      using progress = await showProgress('plant', true)
      const [, atFirst] = shown().split(hidesCursor)
      expect(stripVTControlCharacters(atFirst ?? '')).toBe('0 plants  0/s  0s')
      progress.update(3, 1, 4)
      await expect.poll(words).toMatch(/^.*█{7,8}░{22,23} +25% {2}3 plants .* left$/)
      // More than was expected.
      progress.update(1_000, 5, 4)
      await expect.poll(words).toMatch(/█{30} +100% {2}1,000 plants .* left$/)
      progress.update(7, 7, 0)
      await expect.poll(words).toMatch(/^[^█%]*7 plants {2}[\d,]+\/s {2}\ds$/)
      // The command ends, and with it the bar.
      expect(process.listenerCount('SIGINT')).toBe(signals)
    }
    const atLast = shown()
    expect(atLast).toContain(showsCursor)
    expect(atLast.endsWith(clearsLine)).toBe(true)
  })
})
