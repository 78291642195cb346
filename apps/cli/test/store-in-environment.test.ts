import { defaultStoreUrl } from '@plant-store/engine'
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

test.each(['file:data/plants.db\r', 'file:data/plants.db\n', ' file:data/plants.db'])(
  'a DATABASE_URL with white space at an end is refused: %j',
  url => {
    onTestFinished(() => void vi.unstubAllEnvs())
    vi.stubEnv('DATABASE_URL', url)

    expect(storeUrl).toThrow('DATABASE_URL must not begin or end with white space')
  },
)
