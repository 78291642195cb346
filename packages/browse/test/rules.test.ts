import { plant } from '@plant-store/domain/testing'
import { hasBrowser, type Page } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { type Opened, shows, signIn, usePage } from './page.ts'

/** One test for each thing that people lose in such pages. */

const ficus = plant(7n, 'Ficus', 'tree')
const phone = { width: 375, height: 667 }
const several = Array.from({ length: 250 }, (_, n) => plant(BigInt(n), `n${n}`))

describe('the page', needs('chromium', hasBrowser), () => {
  const { open, stored, fill, replace, remove, ...fixture } = usePage()

  describe('an answer belongs to its form', () => {
    test('a late answer says what became of it, and closes no other form', async () => {
      await fill([5n, 'five'], [9n, 'nine'])
      await using opened = await open()
      const { page, follow, press, member, status, heading, cells } = opened
      const release = await hold(page, 'PUT', '5')
      await follow('5')
      await member('name').fill('five again')
      await press('Save')
      await press('Close')
      await follow('9')
      await member('name').fill('typed')

      release()

      await shows(status, 'Plant 5 is saved.')
      await expect.poll(cells).toEqual(['five again', '–', 'nine', '–'])
      expect(await heading('Plant 9').isVisible()).toBe(true)
      expect(await member('name').inputValue()).toBe('typed')
    })

    test('a late failure keeps what was typed, and touches no other form', async () => {
      await fill([5n, 'five'], [9n, 'nine'])
      await using opened = await open()
      const { page, follow, press, member, heading } = opened
      const release = await hold(page, 'PUT', '5')
      await follow('5')
      await member('name').fill('mine')
      await press('Save')
      await press('Close')
      await replace(5n, 'theirs')
      await follow('9')
      await member('name').fill('typed')

      release()

      const words = 'Plant 5 was changed since you opened it. Nothing was saved.'
      await shows(page.locator('#unsaved'), words)
      expect(await member('name').inputValue()).toBe('typed')
      await press('Close')
      await press('Discard what I typed')
      await press('Go on editing')
      await heading('Plant 5').waitFor()
      expect(await member('name').inputValue()).toBe('mine')
      await press('Save')
      await page.getByRole('heading', { name: words }).waitFor()
    })

    test('signing out empties the forms that were closed', async () => {
      await fill([5n, 'SECRET'])
      await using opened = await open()
      const { page, follow, press, member } = opened
      const release = await hold(page, 'PUT', '5', 'abort')
      await follow('5')
      await member('name').fill('SECRET, too')
      await press('Save')
      await press('Close')
      release()
      await shows(
        page.locator('#unsaved'),
        'Plant 5: It was not saved: the store did not answer',
      )

      await press('Sign out')
      await shows(page.locator('body > dialog'), 'Plant 5 is not saved.')
      await press('Discard what I typed')

      await page.getByLabel('Access token').waitFor()
      const html = await page.content()
      expect(html).not.toContain('SECRET')
      expect(await page.locator('#unsaved').textContent(), 'a way back').toBe('')
    })
  })

  describe('every way out asks when something was typed', () => {
    const ways: readonly (readonly [string, (opened: Opened) => Promise<unknown>])[] = [
      ['Close', ({ press }) => press('Close')],
      ['Escape', ({ page }) => page.keyboard.press('Escape')],
      ['Back', ({ page }) => page.evaluate(() => history.back())],
      ['another place', ({ page }) => page.evaluate(() => location.assign('#plants/9'))],
    ]

    test.each(ways)('%s', async (_way, leave) => {
      await fill([7n, 'Ficus'], [9n, 'nine'])
      await using opened = await open()
      const { follow, press, member, heading, form } = opened
      await follow('7')
      await member('name').fill('typed')

      await leave(opened)
      await heading('Plant 7 is not saved.').waitFor()
      await expect.poll(opened.focused).toBe('Go on editing')
      await press('Go on editing')
      await expect.poll(opened.hash).toBe('#plants/7')
      expect(await member('name').inputValue()).toBe('typed')

      await leave(opened)
      await press('Discard what I typed')
      await expect.poll(opened.hash).not.toBe('#plants/7')
      await expect.poll(() => form.getByText('Plant 7').count()).toBe(0)
    })

    test('reload and the end of the tab', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { page, follow, member } = opened
      await follow('7')
      await member('name').fill('typed')
      const asked: string[] = []
      page.on('dialog', dialog => {
        asked.push(dialog.type())
        dialog.dismiss()
      })

      await page.evaluate(() => setTimeout(() => location.reload()))
      await expect.poll(() => asked).toEqual(['beforeunload'])
      await page.close({ runBeforeUnload: true })
      await expect.poll(() => asked).toEqual(['beforeunload', 'beforeunload'])

      expect(await member('name').inputValue()).toBe('typed')
    })

    test('the link to a taken id opens beside what was typed', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { follow, press, member, heading } = opened
      await press('New')
      await member('id').fill('7')
      await member('name').fill('typed')
      await press('Save')
      await follow('id 7 exists')
      await heading('Plant 7').waitFor()
      expect(await member('name').inputValue()).toBe('Ficus')

      await press('Close')

      await heading('New plant').waitFor()
      expect(await member('name').inputValue()).toBe('typed')
    })

    test('a form in which nothing was typed closes at once', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { page, follow, form } = opened
      await follow('7')
      await form.waitFor()
      await page.keyboard.press('Escape')
      await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
      await follow('7')
      await form.waitFor()
      await page.goBack()
      await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
    })
  })

  test('a text costs its length once, and is shown from its beginning', async () => {
    await fill([7n, 'a line\n'.repeat(140_000)])
    await using opened = await open()
    const { page, rows, member } = opened
    await shows(rows, '1 row, no more')

    await page.evaluate(() => location.assign('#plants/7'))
    // It takes 1 s, or several on a busy machine. With the direction first it takes minutes.
    await member('name').waitFor({ timeout: 40_000 })

    const start = () => {
      const control = document.activeElement
      return control instanceof HTMLTextAreaElement
        ? [control.dir, control.selectionStart, control.scrollTop]
        : undefined
    }
    expect(await page.evaluate(start)).toEqual(['auto', 0, 0])
  })

  describe('what deletes is never what the next key answers', () => {
    test('the focus of a question is on the harmless button', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { page, follow, press, focused, member } = opened
      await follow('7')
      await press('Delete')
      await expect.poll(focused).toBe('Keep it')
      await page.keyboard.press('Enter')
      await member('name').fill('mine')
      await replace(7n, 'theirs')
      await press('Save')
      await expect.poll(focused).toBe('Go on editing')
    })

    test('a held key answers nothing', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { page, follow, button, press, member, heading } = opened
      await follow('7')
      await button('Delete').focus()
      await holdKey(page, 'Enter')
      await heading('Delete plant 7?').waitFor()
      await press('Delete 7')
      await expect.poll(() => stored(7n)).toBeUndefined()

      await fill([7n, 'Ficus'])
      await press('Show')
      await page.getByRole('link', { name: '7', exact: true }).focus()
      await page.keyboard.down('Enter')
      await member('name').waitFor()
      await holdKey(page, 'Enter')
      expect(await member('name').inputValue()).toBe('Ficus')
    })
  })

  describe('what is on its way is said', () => {
    test('a form says that it saves, and takes no text meanwhile', async () => {
      await fill([7n, 'Ficus', 'tree'])
      await using opened = await open()
      const { page, follow, press, member, form, status } = opened
      const release = await hold(page, 'PUT', '7')
      await follow('7')
      await member('name').fill('mine')
      await press('Save')
      await shows(form.getByRole('status'), 'Saving …')
      await member('name').focus()
      await page.keyboard.type('lost')
      await member('has tag').click()
      expect(await member('name').inputValue()).toBe('mine')
      expect(await member('has tag').isChecked()).toBe(true)
      release()
      await shows(status, 'Plant 7 is saved.')
      expect(await stored(7n)).toEqual({ ...ficus, name: 'mine' })
    })

    test('the list says that it loads', async () => {
      await fixture.store().fill(several)
      await using opened = await open()
      const { rows, press } = opened
      await shows(rows, '100 rows, more follow')
      const release = fixture.store().holdListsAfter(0)
      await press('Next')
      await shows(rows, 'Loading …')
      expect(await rows.textContent()).toBe('Loading …')
      release()
      await shows(rows, '100 rows, more follow')
    })

    test('a record says that it loads', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { page, follow, status, heading } = opened
      const release = await hold(page, 'GET', '7')
      await follow('7')
      await shows(status, 'Loading plant 7 …')
      release()
      await heading('Plant 7').waitFor()
    })
  })

  describe('the eye is where the message is', () => {
    test('the status line stays in view, and Next begins at the top', async () => {
      await fixture.store().fill(several)
      await using opened = await open()
      const { page, follow, press, member, status, rows } = opened
      await follow('98')
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
      const { page, follow, row, heading } = opened
      const json = { error: 50001, message: 'broken' }
      const answer = { status: 500, json }
      await page.route('**/plants/80', route => route.fulfill(answer), { times: 1 })
      await follow('80')
      await shows(row('80').getByRole('alert'), 'Not opened: broken (50001)')
      await follow('80')
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
      const { follow, ids, refusal, rows, focused } = opened
      await shows(rows, '3 rows, no more')
      await remove(7n)
      await follow('7')
      await shows(refusal, 'There is no plant 7.')
      expect(await ids()).toEqual(['6', '8'])
      expect(await focused()).toBe('8')
    })
  })

  describe('the focus comes back', () => {
    test('to the row, its neighbour, or New', async () => {
      await fill([6n, 'six'], [7n, 'Ficus'], [8n, 'eight'])
      await using opened = await open()
      const { follow, press, member, status, focused, ids } = opened
      await follow('7')
      await press('Close')
      await expect.poll(focused).toBe('7')
      await follow('7')
      await member('name').fill('mine')
      await press('Save')
      await shows(status, 'Plant 7 is saved. 3 rows')
      await expect.poll(focused).toBe('7')
      await follow('7')
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
      const { page, rows } = opened
      await shows(rows, '100 rows, more follow')
      await page.getByRole('link', { name: '99', exact: true }).focus()
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

    test('from a button that is off to the rows', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open({ place: '#plants?after=6' })
      const { press, focused } = opened
      await press('First')
      await expect.poll(focused).toBe('7')
    })
  })

  describe('what cannot be seen is shown', () => {
    test('spaces are kept in a cell and in what is copied from it', async () => {
      await fill([7n, ' two  spaces ', 'tree'])
      await using opened = await open()
      const { page, rows } = opened
      await shows(rows, '1 row, no more')
      const copied = () => {
        const cell = document.querySelector('#table td bdi')
        getSelection()?.selectAllChildren(cell ?? document.body)
        return `${getSelection()}`
      }
      expect(await page.evaluate(copied)).toBe(' two  spaces ')
    })

    test('invisible characters are shown as their code, signs in italics', async () => {
      const invisible = ['\u00ad', '\u200b', '\u3164', '\u{e0041}', '\u2028']
      await fill([7n, invisible.join(''), 'a\u202eb'], [8n, '', '–'], [9n, '(empty)'])
      await using opened = await open()
      const { page, rows, cells } = opened
      await shows(rows, '3 rows, no more')
      expect(await cells()).toEqual([
        'U+00ADU+200BU+3164U+E0041U+2028',
        'aU+202Eb',
        ...['(empty)', '–', '(empty)', '–'],
      ])
      const signs = await page.locator('#table td i').allTextContents()
      expect(signs.slice(5)).toEqual(['U+202E', '(empty)', '–'])
    })

    test('texts that differ look different in a conflict', async () => {
      const long = 'x'.repeat(5_000)
      await fill([7n, `${long}a${long}`, 'one tag'])
      await using opened = await open()
      const { page, follow, press, member, heading } = opened
      await follow('7')
      await member('name').fill(`${long}b${long}`)
      await member('tag').fill('one tag ')
      await replace(7n, `${long}а${long}`, 'one  tag')
      await press('Save')

      await heading('Plant 7 was changed since you opened it.').waitFor()
      const excerpt = (sign: string) => `… ${'x'.repeat(100)}${sign}${'x'.repeat(100)} …`
      expect(await page.locator('.states tbody td').allTextContents()).toEqual([
        ...[excerpt('a'), `${excerpt('а U+0430')} *`, `${excerpt('b')} *`],
        ...['one tag', 'one ·tag *', 'one tag· *'],
      ])
    })
  })

  describe('a field says what it wants', () => {
    test('an id is trimmed, and takes digits and a minus sign only', async () => {
      await fill()
      await using opened = await open()
      const { press, member, form, status, rows } = opened
      await press('New')
      for (const wrong of ['9,007', '1.0', '1e3', '−5', '0x10']) {
        await member('id').fill(wrong)
        await press('Save')
        const problem = await form.locator('.problem').first().textContent()
        expect(problem, wrong).toBe('takes digits and a minus sign only')
      }
      await member('id').fill(' -5\t')
      await press('Save')
      await shows(status, 'Plant -5 is saved.')
      await opened.filter('From id').fill(' -4 ')
      await press('Show')
      await shows(rows, '0 rows, no more')
    })

    test('a filter is not capitalised, and keeps what is typed for later', async () => {
      await fixture.store().fill(several)
      await using opened = await open()
      const { press, ids, rows } = opened
      const tag = opened.filter('tag')
      await shows(rows, '100 rows, more follow')
      expect(await tag.getAttribute('autocapitalize')).toBe('none')
      await tag.fill('climber')
      await press('Next')
      await expect.poll(async () => (await ids())[0]).toBe('100')
      expect(await tag.inputValue()).toBe('climber')
    })

    test('a token loses what is pasted around it', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open({ as: ` “Bearer ${fixture.token()}” \n` })
      await shows(opened.rows, '1 row, no more')
    })

    test('a token that no header can carry is refused and not kept', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open({ as: 'plantstore_ж' })
      const { page, requested, rows } = opened
      await shows(page.locator('.sign-in').getByRole('alert'), 'This is no access token')
      expect(requested.filter(url => url.includes('/plants'))).toEqual([])
      expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
      await signIn(page, fixture.token())
      await shows(rows, '1 row, no more')
    })
  })

  describe('every state has its words', () => {
    test('an empty store names the ways to fill it', async () => {
      await fill()
      await using opened = await open()
      const { page, button } = opened
      await shows(page.locator('#empty'), 'No plants yet.')
      const codes = await page.locator('#empty code').allTextContents()
      expect(codes).toEqual([
        'plant-store import FILE',
        'npx --yes pnpm@12 plant-store import FILE',
        'POST /plants/batch',
      ])
      expect(await button('New').isVisible()).toBe(true)
    })

    test('a filter and a search without a match', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open({ place: '#plants?tag=none' })
      const { page, press, rows } = opened
      await shows(page.locator('#empty'), /^No plant matches\.$/)
      await shows(rows, '0 rows, no more')
      await opened.filter('tag').fill('')
      await opened.filter('name contains').fill('none')
      await press('Show')
      await expect.poll(opened.hash).toContain('name_contains')
      await shows(page.locator('#empty'), /^No plant matches\.$/)
    })

    test('a bookmark of a record that is gone shows its list', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open({ place: '#plants/8?tag=tree' })
      const { refusal, rows } = opened
      await shows(refusal, 'There is no plant 8.')
      await shows(rows, '0 rows, no more')
      await expect.poll(opened.hash).toBe('#plants?tag=tree')
    })

    test('a browser that blocks storage keeps the token in memory', async () => {
      await fill([7n, 'Ficus'])
      const prepare = () => {
        const get = () => {
          throw new DOMException('blocked', 'SecurityError')
        }
        Object.defineProperty(window, 'sessionStorage', { get })
      }
      await using opened = await open({ prepare })
      const { follow, heading, rows } = opened
      await shows(rows, '1 row, no more')
      await follow('7')
      await heading('Plant 7').waitFor()
    })

    test('a sign-in that was closed can be opened again', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open({ as: '', place: '#plants/7' })
      const { page, refusal, press, heading } = opened
      await page.getByLabel('Access token').waitFor()
      await page.keyboard.press('Escape')
      await shows(refusal, 'Sign in to see what is in the store.')
      await press('Sign in')
      await signIn(page, fixture.token())
      await heading('Plant 7').waitFor()
    })

    test('the commands for a token name none that is taken', async () => {
      await using opened = await open({ as: '' })
      const { page } = opened
      const commands = async () => page.locator('.sign-in .command').allTextContents()
      await page.getByLabel('Access token').waitFor()
      const [installed = '', inClone = '', ...others] = await commands()
      expect(installed).toMatch(
        /^plant-store token create --name page-[a-z0-9]+ --expires 12h$/,
      )
      expect(inClone).toBe(`npx --yes pnpm@12 ${installed}`)
      expect(others).toEqual([])
      await page.reload()
      await page.getByLabel('Access token').waitFor()
      expect((await commands())[0]).not.toBe(installed)
    })

    test('a search that is stopped at once shows no row of another list', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { press, rows, ids } = opened
      await shows(rows, '1 row, no more')
      const release = fixture.store().holdListsAfter(0)
      await opened.filter('name contains').fill('none')
      await press('Show')
      await press('Stop')
      await shows(rows, '0 rows, more follow')
      expect(await ids()).toEqual([])
      release()
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
      const { page, follow, member, press, heading, form } = opened
      const before = (selector: string) =>
        page.evaluate(
          each =>
            [...document.querySelectorAll(each)].map(
              element => getComputedStyle(element, '::before').content,
            ),
          selector,
        )
      await follow('7')
      const size = () =>
        getComputedStyle(document.activeElement ?? document.body).fontSize
      await form.waitFor()
      expect(await page.evaluate(size)).toBe('16px')
      await member('name').fill('mine')
      await replace(7n, 'theirs')
      await press('Save')
      await heading('Plant 7 was changed').waitFor()
      expect(await before('#table tbody td')).toEqual(['"name "', '"tag "'])
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
    const box = await page.getByRole('link', { name: '7', exact: true }).boundingBox()
    expect(box?.width).toBeGreaterThanOrEqual(24)
    expect(box?.height).toBeGreaterThanOrEqual(24)
    await row('7').locator('td').last().click()
    await heading('Plant 7').waitFor()
    await press('Close')
  })

  test('cells, ids and code are not translated', async () => {
    await fill([7n, 'Ficus'])
    await using opened = await open({ as: '' })
    const { page, follow, rows, form } = opened
    const isTranslated = () =>
      [...document.querySelectorAll<HTMLElement>('td, tbody th, h2, code, textarea')]
        .filter(element => element.translate)
        .map(element => element.textContent)
    await page.getByLabel('Access token').waitFor()
    expect(await page.evaluate(isTranslated)).toEqual(['Sign in'])
    await signIn(page, fixture.token())
    await shows(rows, '1 row, no more')
    await follow('7')
    await form.waitFor()
    expect(await page.evaluate(isTranslated)).toEqual([])
  })
})

/** Holds the requests of a plant back until the returned function is called. */
async function hold(
  page: Page,
  method: string,
  id: string,
  then: 'continue' | 'abort' = 'continue',
): Promise<() => void> {
  const released = Promise.withResolvers<void>()
  await page.route(`**/plants/${id}`, async route => {
    if (route.request().method() !== method) {
      return route.continue()
    }
    await released.promise
    return then === 'abort' ? route.abort() : route.continue()
  })
  return () => released.resolve()
}

/** Holds a key long enough for it to be repeated. */
async function holdKey(page: Page, key: string): Promise<void> {
  for (let count = 0; count < 5; count++) {
    await page.keyboard.down(key)
  }
  await page.keyboard.up(key)
}
