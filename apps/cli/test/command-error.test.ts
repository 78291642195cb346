import { expect, onTestFinished, test, vi } from 'vitest'
import { Interruption, throwWithAdvice } from '../src/command-error.ts'

test('only an error of a damaged store comes with advice', () => {
  const damage = Object.assign(new Error('it is damaged'), { code: 'SQLITE_CORRUPT' })
  const other = new Error('the disk is full')
  expect(() => throwWithAdvice(damage)).toThrow(
    /^it is damaged: restore a backup, or .* export --damaged$/,
  )
  expect(() => throwWithAdvice(damage, 'use an older one')).toThrow(
    /^it is damaged: use an older one$/,
  )
  expect(() => throwWithAdvice(other)).toThrow(other)
})

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'the first %s asks the work to end, and the second one ends the process',
  name => {
    onTestFinished(() => void vi.restoreAllMocks())
    const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never)
    using interruption = new Interruption()
    const { signal } = interruption
    expect(signal.aborted).toBe(false)
    process.emit(name)
    expect(signal.reason).toMatchObject({ message: 'interrupted', exitCode: 130 })
    expect(exit).not.toHaveBeenCalled()
    process.emit(name)
    expect(exit).toHaveBeenCalledExactlyOnceWith(130)
  },
)
