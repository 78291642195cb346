import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { several, shows, signIn, usePage } from './page.ts'

describe('the words of the page', needs('chromium', hasBrowser), () => {
  const { open, fill, replace, ...fixture } = usePage()

  describe('what cannot be seen is shown', () => {
    test('spaces are kept in a cell and in what is copied from it', async () => {
      await fill([7n, ' two  spaces ', 'tree'])
      await using opened = await open()
      const { page, rows } = opened
      await shows(rows, '1 row, no more')
      const copied = () => {
        const cell = document.querySelector('#table th bdi')
        getSelection()?.selectAllChildren(cell ?? document.body)
        return `${getSelection()}`
      }
      expect(await page.evaluate(copied)).toBe(' two  spaces ')
    })

    test('invisible characters are shown as their code, signs in italics', async () => {
      const invisible = '\u00ad\u200b\u3164\u{e0041}\u2028'
      await fill([7n, invisible, 'a\u202eb'], [8n, '', '–'], [9n, '(empty)'])
      await using opened = await open()
      const { page, rows, cells } = opened
      await shows(rows, '3 rows, no more')
      expect(await cells()).toEqual([
        'U+00ADU+200BU+3164U+E0041U+2028',
        'aU+202Eb',
        '(empty)',
        '–',
        '(empty)',
        '–',
      ])
      const signs = await page.locator('#table tbody i').allTextContents()
      expect(signs.slice(5)).toEqual(['U+202E', '(empty)', '–'])
    })

    test('texts that differ look different in a conflict', async () => {
      const long = 'x'.repeat(5_000)
      await fill([7n, `${long}a${long}`, 'one tag'])
      await using opened = await open()
      const { page, openRow, press, member, heading } = opened
      await openRow('7')
      await member('name').fill(`${long}b${long}`)
      await member('tag').fill('one tag ')
      await replace(7n, `${long}а${long}`, 'one  tag')
      await press('Save')

      await heading('Plant 7 was changed since you opened it.').waitFor()
      const context = 'x'.repeat(100)
      const excerpt = (sign: string) => `… ${context}${sign}${context} …`
      expect(await page.locator('.states tbody td').allTextContents()).toEqual([
        excerpt('a'),
        `${excerpt('а U+0430')} *`,
        `${excerpt('b')} *`,
        'one tag',
        'one ·tag *',
        'one tag· *',
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
        expect(problem, wrong).toBe('The id takes digits and a minus sign only.')
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
      expect(codes).toEqual(['npx --yes pnpm@12 plant-store import FILE'])
      expect(await button('New').count()).toBe(1)
      for (const name of ['Show', 'First', 'Next']) {
        expect(await button(name).count(), name).toBe(0)
      }
    })

    test('a filter and a search without a match', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open({ place: '#plants?tag=none' })
      const { page, press, rows } = opened
      await shows(
        page.locator('#empty'),
        'No plant matches.Looked for tag noneAll plants',
      )
      await shows(rows, '0 rows, no more')
      await opened.filter('tag').fill('')
      await opened.filter('name contains').fill('none')
      await press('Show')
      await expect.poll(opened.hash).toContain('name_contains')
      await shows(page.locator('#empty'), 'Looked for name contains none')
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
      const { openRow, heading, rows } = opened
      await shows(rows, '1 row, no more')
      await openRow('7')
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

    test('a sign-in that was closed over a list can be opened again', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { page, rows, refusal, press, button } = opened
      await shows(rows, '1 row, no more')
      await page.evaluate(() => sessionStorage.clear())
      await press('Show')
      await page.getByLabel('Access token').waitFor()
      await page.keyboard.press('Escape')
      await shows(refusal, 'Sign in to see what is in the store.')
      expect(await button('Sign out').isVisible()).toBe(false)
      await press('Sign in')
      await signIn(page, fixture.token())
      await shows(rows, '1 row, no more')
      expect(await button('Sign out').isVisible()).toBe(true)
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

  test('cells, ids and code are not translated', async () => {
    await fill([7n, 'Ficus'])
    await using opened = await open({ as: '' })
    const { page, openRow, rows, form } = opened
    const isTranslated = () =>
      [...document.querySelectorAll<HTMLElement>('td, tbody th, h2, code, textarea')]
        .filter(element => element.translate)
        .map(element => element.textContent)
    await page.getByLabel('Access token').waitFor()
    expect(await page.evaluate(isTranslated)).toEqual(['Sign in'])
    await signIn(page, fixture.token())
    await shows(rows, '1 row, no more')
    await openRow('7')
    await form.waitFor()
    expect(await page.evaluate(isTranslated)).toEqual([])
  })
})
