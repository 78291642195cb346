import { afterEach, vi } from 'vitest'

// A test may replace the time and functions, and need not bring them back.
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})
