import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ours } from '../src/targets.ts'

test('measures the service with the settings that pnpm start gives it', () => {
  const { scripts } = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8'))
  const settings = Object.entries(ours.env ?? {}).map(([name, value]) => `${name}=${value}`)
  const command = ['', ...settings, 'apps/api/dist/main.js'].join(' ')
  expect(scripts.start).toMatch(new RegExp(`${command}$`))
})
