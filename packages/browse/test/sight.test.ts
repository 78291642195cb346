import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { several, shows, usePage } from './page.ts'

const phone = { width: 375, height: 667 }

describe('the list', needs('chromium', hasBrowser), () => {
  const { open, fill, replace, remove, ...fixture } = usePage()

  describe('the eye is where the message is', () => {
    test('the status line stays in view, and Next begins at the top', async () => {
      await fixture.store().fill(several)
      await using opened = await open()
      const { page, openRow, press, member, status, rows } = opened
      await openRow('98')
      await member('name').fill('mine')
      await press('Save')
      await shows(status, 'Plant 98 is saved.')
      const scrolled = await page.evaluate(() => scrollY)
      const box = await status.boundingBox()
      expect(scrolled, 'the list is scrolled').toBeGreaterThan(1_000)
      expect(box?.y, 'the status line').toBeGreaterThanOrEqual(0)

      await press('Next')
      await shows(rows, '100 rows, more follow')
      await expect.poll(() => page.evaluate(() => scrollY)).toBe(0)
    })

    test('a row that cannot be opened says so beside it', async () => {
      await fixture.store().fill(several)
      await using opened = await open()
      const { page, openRow, row, heading } = opened
      const json = { error: 50001, message: 'broken' }
      const answer = { status: 500, json }
      await page.route('**/plants/80', route => route.fulfill(answer), { times: 1 })
      await openRow('80')
      await shows(row('80').getByRole('alert'), 'Not opened: broken (50001)')
      await openRow('80')
      await heading('Plant 80').waitFor()
    })

    test('a list that cannot be read can be tried again', async () => {
      await fixture.store().fill(several)
      await using opened = await open()
      const { page, press, refusal, ids, rows } = opened
      await shows(rows, '100 rows, more follow')
      await page.route('**/plants?*', route => route.abort())
      await press('Next')
      await shows(refusal, 'The list cannot be read: the store did not answer.')
      expect(await ids(), 'rows of another page').toEqual([])
      await page.unroute('**/plants?*')
      await press('Try again')
      await expect.poll(async () => (await ids())[0]).toBe('100')
      expect(await refusal.textContent()).toBe('')
    })

    test('a row that proves gone disappears', async () => {
      await fill([6n, 'six'], [7n, 'Ficus'], [8n, 'eight'])
      await using opened = await open()
      const { openRow, ids, refusal, rows, focused } = opened
      await shows(rows, '3 rows, no more')
      await remove(7n)
      await openRow('7')
      await shows(refusal, 'There is no plant 7.')
      expect(await ids()).toEqual(['6', '8'])
      expect(await focused()).toBe('8')
    })
  })

  describe('the focus comes back', () => {
    test('to the row, its neighbour, or New', async () => {
      await fill([6n, 'six'], [7n, 'Ficus'], [8n, 'eight'])
      await using opened = await open()
      const { openRow, press, member, status, focused, ids } = opened
      await openRow('7')
      await press('Close')
      await expect.poll(focused).toBe('7')
      await openRow('7')
      await member('name').fill('mine')
      await press('Save')
      await shows(status, 'Plant 7 is saved. 3 rows')
      await expect.poll(focused).toBe('7')
      await openRow('7')
      await press('Delete')
      await press('Delete 7')
      await expect.poll(ids).toEqual(['6', '8'])
      await expect.poll(focused).toBe('8')
      await press('New')
      await press('Close')
      await expect.poll(focused).toBe('New')
    })

    test('never below the head that sticks to the top', async () => {
      await fixture.store().fill(several)
      await using opened = await open()
      const { page, rows, row } = opened
      await shows(rows, '100 rows, more follow')
      await row('99').locator('a').first().focus()
      for (let count = 0; count < 40; count++) {
        await page.keyboard.press('Shift+Tab')
      }
      const edges = () => [
        document.querySelector('#table thead th')?.getBoundingClientRect().bottom,
        document.activeElement?.getBoundingClientRect().top,
      ]
      const [head = 0, link = 0] = await page.evaluate(edges)
      expect(await opened.focused()).toBe('59')
      expect(link).toBeGreaterThanOrEqual(head)
    })

    test('not from somebody who types in a filter meanwhile', async () => {
      await fill([7n, 'Ficus'], [8n, 'eight'])
      await using opened = await open()
      const { page, openRow, press, status, filter, ids } = opened
      await openRow('7')
      await press('Delete')
      const release = fixture.store().holdListsAfter(0)
      await press('Delete 7')
      await shows(status, 'Plant 7 is deleted.')
      await filter('tag').focus()
      release()
      await expect.poll(ids).toEqual(['8'])
      await page.keyboard.type('tree')
      expect(await filter('tag').inputValue()).toBe('tree')
    })

    test('from a button that is off to the rows', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open({ place: '#plants?after=6' })
      const { press, focused } = opened
      await press('First')
      await expect.poll(focused).toBe('7')
    })
  })

  describe('Previous goes to the page before in this list', () => {
    test('not to another list, record or bookmark', async () => {
      await fixture.store().fill(several)
      await using opened = await open({ place: '#plants?after=49' })
      const { page, press, button, ids, rows } = opened
      const startsAt = async (id: string) => {
        await expect.poll(async () => (await ids())[0]).toBe(id)
      }
      await startsAt('50')
      await shows(rows, '100 rows, more follow')
      expect(await button('Previous').isDisabled(), 'on a bookmark').toBe(true)
      await press('Next')
      await startsAt('150')
      await page.evaluate(() => location.assign('#plants/160?after=149'))
      await opened.heading('Plant 160').waitFor()
      await page.evaluate(() => location.assign('#plants/161?after=149'))
      await opened.heading('Plant 161').waitFor()
      await press('Close')
      await opened.reload()
      await startsAt('150')
      await press('Previous')
      await startsAt('50')
      await expect.poll(() => button('Previous').isDisabled()).toBe(true)
      await press('Next')
      await startsAt('150')
      await page.evaluate(() => location.assign('#plants?tag=none'))
      await shows(rows, '0 rows, no more')
      expect(await button('Previous').isDisabled(), 'in another list').toBe(true)
    })
  })

  describe('on a phone', () => {
    test('the first row is in the upper half, and filters are folded', async () => {
      await fill([7n, 'Ficus', 'tree'], [8n, 'eight'])
      await using opened = await open({ viewport: phone })
      const { page, row, press, ids } = opened
      const tag = opened.filter('tag')
      const box = await row('7').boundingBox()
      expect(box?.y).toBeLessThan(phone.height / 2 - 30)
      expect(await tag.isVisible()).toBe(false)
      await press('Filter')
      await tag.fill('tree')
      await press('Show')
      await expect.poll(ids).toEqual(['7'])
      expect(await tag.isVisible()).toBe(false)
      await page.getByRole('button', { name: 'Filter (1)' }).waitFor()
    })

    test('rows and conflicts name their values, fields do not enlarge the page', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open({ viewport: phone })
      const { page, openRow, member, press, heading, form } = opened
      const before = (selector: string) =>
        page.evaluate(
          each =>
            [...document.querySelectorAll(each)].map(
              element => getComputedStyle(element, '::before').content,
            ),
          selector,
        )
      await openRow('7')
      const size = () =>
        getComputedStyle(document.activeElement ?? document.body).fontSize
      await form.waitFor()
      expect(await page.evaluate(size)).toBe('16px')
      await member('name').fill('mine')
      await replace(7n, 'theirs')
      await press('Save')
      await heading('Plant 7 was changed').waitFor()
      expect(await before('#table tbody td')).toEqual(['"tag "', '"id "'])
      expect(await before('.states tbody td')).toEqual([
        '"when you opened it "',
        '"now in the store "',
        '"yours "',
      ])
      const widths = await page
        .locator('.states tbody td')
        .evaluateAll(cells =>
          cells.map(cell => cell.getBoundingClientRect().right <= innerWidth),
        )
      expect(widths).toEqual([true, true, true])
    })
  })

  test('the whole row opens its record, and its link is large enough', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open()
    const { page, row, heading, press } = opened
    const box = await row('7').locator('a').first().boundingBox()
    expect(box?.width).toBeGreaterThanOrEqual(24)
    expect(box?.height).toBeGreaterThanOrEqual(24)
    await row('7').locator('td').last().click()
    await heading('Plant 7').waitFor()
    await press('Close')
  })
})
