import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { hold, shows, usePage } from './page.ts'

describe('what people lose elsewhere', needs('chromium', hasBrowser), () => {
  const { open, fill, stored } = usePage()

  test('what an extension writes while a change is sent is kept', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open()
    const { page, openRow, press, member, form } = opened
    const release = await hold(page, 'PUT', '7')
    await openRow('7')
    await member('name').fill('mine')
    await press('Save')
    await member('name').evaluate(field => Object.assign(field, { value: 'more' }))
    expect(await member('name').getAttribute('readonly')).toBe('')

    release()

    await shows(form.getByRole('alert'), 'Saved without what was typed meanwhile')
    expect(await member('name').inputValue()).toBe('more')
    expect((await stored(7n))?.name).toBe('mine')
  })

  test('a page kept in memory forgets what it showed after a sign-out', async () => {
    await fill([7n, 'SECRET'])
    await using opened = await open()
    const { page, rows } = opened
    await shows(rows, '1 row')
    await page.evaluate(() => {
      sessionStorage.clear()
      dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))
    })
    await page.getByLabel('Access token').waitFor()
    expect(await page.content()).not.toContain('SECRET')
  })

  test('a filter that its field cannot show is kept, seen and cleared', async () => {
    await fill([7n, 'Ficus', 'a\nb'], [8n, 'eight', ''])
    for (const [tag, sign] of [
      ['a%0Ab', 'a ↵ b'],
      ['', '(empty)'],
    ]) {
      await using opened = await open({ place: `#plants?tag=${tag}` })
      const { filter, press, rows, hash } = opened
      await shows(rows, '1 row')
      expect(await filter('tag').getAttribute('placeholder'), tag).toBe(sign)
      await press('Show')
      await shows(rows, '1 row')
      expect(hash(), tag).toBe(`#plants?tag=${tag}`)
      await press('Clear tag')
      await shows(rows, '2 rows')
    }
  })

  test('Copy gives what is stored, and spelling has no sign', async () => {
    const name = '🌶\ufe0f گل\u200cرز\nnext\u200b'
    await fill([7n, name])
    await using opened = await open()
    const { page, rows, cells } = opened
    await shows(rows, '1 row')
    expect(await cells()).toEqual(['🌶\ufe0f گل\u200cرز ↵ nextU+200B', '–'])
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const copied = await page.evaluate(() => {
      getSelection()?.selectAllChildren(
        document.querySelector('#table tbody th') ?? document.body,
      )
      document.execCommand('copy')
      return navigator.clipboard.readText()
    })
    expect(copied).toBe(name)
  })

  test('a line break at the end of a new text is not saved', async () => {
    await fill()
    await using opened = await open()
    const { press, member, status } = opened
    await press('New')
    await member('id').fill('7')
    await member('name').fill('Ficus\n')
    await press('Save')
    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual({ id: 7n, name: 'Ficus' })
  })

  test('the title names the plant or the filter', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open({ place: '#plants?tag=tree' })
    const { page, openRow } = opened
    await expect.poll(() => page.title()).toBe('plants: tag tree – Plant Store')
    await openRow('7')
    await expect.poll(() => page.title()).toBe('Ficus (7) – Plant Store')
  })
})
