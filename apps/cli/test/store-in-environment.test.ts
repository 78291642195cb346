import { defaultStoreUrl } from '@plant-store/persistence'
import { expect, onTestFinished, test, vi } from 'vitest'
import { storeUrl } from '../src/store-in-environment.ts'

test.each([undefined, ''])(
  'the store is that of the server if DATABASE_URL is %j',
  url => {
    onTestFinished(() => void vi.unstubAllEnvs())
    vi.stubEnv('DATABASE_URL', url)
    expect(storeUrl()).toBe(defaultStoreUrl)
  },
)
