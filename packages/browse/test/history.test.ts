import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { shows, usePage } from './page.ts'

describe('the history of the tab', needs('chromium', hasBrowser), () => {
  const { open, fill } = usePage()

  test('what is asked for while the tab goes back is shown', async () => {
    await fill([7n, 'Ficus', 'tree'], [8n, 'eight'])
    await using opened = await open({ prepare: holdBack })
    const { page, openRow, press, status, hash } = opened
    await openRow('7')
    await press('Delete')
    await press('Delete 7')
    await shows(status, 'Plant 7 is deleted.')

    await opened.filter('tag').fill('none')
    await press('Show')
    await page.evaluate('goBack()')

    await shows(page.locator('#empty'), 'No plant matches.')
    await expect.poll(hash).toBe('#plants?tag=none')
  })

  test('Back that is refused goes back once, also to an unknown entry', async () => {
    await fill([7n, 'Ficus'])
    await using opened = await open({ place: '#plants?tag=none' })
    const { page, openRow, press, member, heading, hash, dialog } = opened
    await page.evaluate(() => location.assign('#plants'))
    await shows(opened.rows, '1 row')
    // Firefox leaves such an entry after a click on a link to the place that is shown.
    await page.evaluate(() => history.replaceState(null, '', '#plants'))
    await openRow('7')
    await member('name').fill('typed')

    await page.evaluate(() => history.back())
    await heading('Plant 7 is not saved.').waitFor()
    await press('Go on editing')

    await expect.poll(hash).toBe('#plants/7')
    expect(await member('name').inputValue()).toBe('typed')
    await press('Close')
    await press('Discard what I typed')
    await expect.poll(hash).toBe('#plants')
    expect(await dialog.count()).toBe(0)
  })

  test('the link to the list that is shown reads it again', async () => {
    await fill([7n, 'Ficus'])
    await using opened = await open()
    const { page, rows, follow, ids } = opened
    await shows(rows, '1 row')
    const lengthBefore = await page.evaluate(() => history.length)
    await fill([8n, 'eight'])

    await follow('plants')

    await expect.poll(ids).toEqual(['8'])
    expect(await page.evaluate(() => history.length)).toBe(lengthBefore)
  })
})

/** Lets `history.back()` wait for `goBack()`. */
function holdBack(): void {
  const back = history.back.bind(history)
  history.back = () => Object.assign(window, { goBack: back })
}
