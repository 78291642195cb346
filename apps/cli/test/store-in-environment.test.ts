import { defaultStoreUrl } from '@plant-store/engine'
import { afterEach, expect, test, vi } from 'vitest'
import { openStore, storeUrl } from '../src/store-in-environment.ts'

afterEach(() => void vi.unstubAllEnvs())

test('the store is that of the server if DATABASE_URL is empty', () => {
  vi.stubEnv('DATABASE_URL', '')

  expect(storeUrl()).toBe(defaultStoreUrl)
})

test('settings are read as the server reads them', async () => {
  vi.stubEnv('DATABASE_URL', 'file:data/plants.db\r')
  expect(storeUrl).toThrow('DATABASE_URL must not begin or end with white space')
  vi.stubEnv('DATABASE_URL', 'file:never/plants.db')
  vi.stubEnv('WAL_LIMIT', '1KiB')
  await expect(openStore()).rejects.toThrow('WAL_LIMIT must be')
})
