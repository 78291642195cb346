import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defaultStoreUrl } from '@plant-store/engine'
import { temporaryFolder } from '@plant-store/harness/vitest'
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

test('the store may be named by a file, as the server has it', () => {
  onTestFinished(() => void vi.unstubAllEnvs())
  const file = join(temporaryFolder(), 'url')
  writeFileSync(file, 'file:a/plants.db\n')
  vi.stubEnv('DATABASE_URL_FILE', file)

  expect(storeUrl()).toBe('file:a/plants.db')
})

test('a DATABASE_URL with white space at an end is refused', () => {
  onTestFinished(() => void vi.unstubAllEnvs())
  vi.stubEnv('DATABASE_URL', 'file:data/plants.db\r')

  expect(storeUrl).toThrow('DATABASE_URL must not begin or end with white space')
})
