import { expect, test, vi } from 'vitest'
import { Interruption } from '../src/command-error.ts'

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'the first %s asks the work to end, and the second one ends the process',
  name => {
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
