import { scopesByChoice } from '@plant-store/access'
import { plant } from '@plant-store/domain/testing'
import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { usePage } from './page.ts'

describe('the API reference', needs('chromium', hasBrowser), () => {
  const { open, ...fixture } = usePage()

  test.each([
    ['a plant with a script in its name', 'plants', 'readPlant', /\.json$/],
    ['metrics in plain text', 'service', 'metrics', /\.txt$/],
  ])('no browser runs a downloaded answer: %s', async (_answer, tag, name, fileName) => {
    await fixture.store().fill([plant(42n, '<script>alert(1)</script>')])
    const as = fixture.store().token(Object.values(scopesByChoice).flat())
    await using opened = await open({ as })
    const { page } = opened
    await page.goto(`${fixture.store().url}/docs`)
    const operation = page.locator(`#operations-${tag}-${name}`)
    await operation.locator('.opblock-summary-control').click()
    await operation.getByRole('button', { name: 'Execute' }).click()
    const downloaded = page.waitForEvent('download')

    await operation.getByRole('button', { name: 'Download' }).click()

    const download = await downloaded
    expect(download.suggestedFilename()).toMatch(fileName)
  })
})
