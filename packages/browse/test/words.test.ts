import { describe, expect } from 'vitest'
import { several, shows, signIn, test } from './page.ts'

describe('what cannot be seen is shown', () => {
  test('invisible characters by their code, spaces as they are', {
    plants: [
      [7n, '\u00ad\u200b\u3164\u{e0041}\u2028', 'a\u202eb'],
      [8n, '', '–'],
      [9n, '(empty)'],
      [10n, 'two  spaces'],
    ],
  }, async ({ page, cells }) => {
    await expect
      .poll(cells)
      .toEqual([
        'U+00ADU+200BU+3164U+E0041U+2028',
        'aU+202Eb',
        '(empty)',
        '–',
        '(empty)',
        '–',
        'two  spaces',
        '–',
      ])
    const signs = await page.locator('#table tbody i').allTextContents()
    expect(signs.slice(5, -1), 'in italics').toEqual(['U+202E', '(empty)', '–'])
    const selected = () => {
      getSelection()?.selectAllChildren(document.body)
      return `${getSelection()}`
    }
    expect(await page.evaluate(selected)).toContain('two  spaces')
  })

  test('but spelling has no sign, and Copy gives what is stored', {
    plants: [[7n, '🌶\ufe0f گل\u200cرز\nnext\u200b']],
  }, async ({ page, cells }) => {
    await expect.poll(cells).toEqual(['🌶\ufe0f گل\u200cرز ↵ nextU+200B', '–'])
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const copied = await page.evaluate(() => {
      getSelection()?.selectAllChildren(
        document.querySelector('#table tbody th') ?? document.body,
      )
      document.execCommand('copy')
      return navigator.clipboard.readText()
    })
    expect(copied).toBe('🌶\ufe0f گل\u200cرز\nnext\u200b')
  })
})

describe('a field says what it wants', () => {
  test('a filter is not capitalised, and keeps what is typed for later', {
    plants: several,
  }, async ({ press, ids, rows, filter }) => {
    const tag = filter('tag')
    await shows(rows, '100 rows, more follow')
    expect(await tag.getAttribute('autocapitalize')).toBe('none')
    await tag.fill('climber')
    await press('Next')
    await expect.poll(async () => (await ids())[0]).toBe('100')
    expect(await tag.inputValue()).toBe('climber')
  })

  test('a token is trimmed, and refused if no header can carry it', {
    isSignedOut: true,
  }, async ({ page, requested, rows, signInAlert, token }) => {
    await signIn(page, 'plantstore_ж')
    await shows(signInAlert, 'This is no access token')
    expect(requested.filter(url => url.includes('/plants'))).toEqual([])
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
    await signIn(page, ` “Bearer ${token}” \n`)
    await shows(rows, '1 row, no more')
  })
})

describe('every state has its words', () => {
  test('an empty store names the ways to fill it', { plants: [] }, async ({
    page,
    button,
    empty,
  }) => {
    await shows(empty, 'No plants yet.')
    const codes = await page.locator('#empty code').allTextContents()
    expect(codes).toEqual(['npx --yes pnpm@12 plant-store import FILE'])
    for (const [name, count] of Object.entries({ New: 1, Show: 0, First: 0, Next: 0 })) {
      expect(await button(name).count(), name).toBe(count)
    }
  })

  test('a filter and a search without a match', {
    place: '#plants?tag=none',
  }, async ({ press, rows, empty, filter }) => {
    await shows(empty, 'No plant matches.Looked for tag noneAll plants')
    await shows(rows, '0 rows, no more')
    await filter('tag').fill('')
    await filter('name contains').fill('none')
    await press('Show')
    await shows(empty, 'Looked for name contains none')
  })

  test('a bookmark of a record that is gone shows its list', {
    place: '#plants/8?tag=tree',
  }, async ({ refusal, rows, hash }) => {
    await shows(refusal, 'There is no plant 8.')
    await shows(rows, '1 row, no more')
    await expect.poll(hash).toBe('#plants?tag=tree')
  })

  test('a browser that blocks storage keeps the token in memory', {
    isSignedOut: true,
    prepare: () => {
      const get = () => {
        throw new DOMException('blocked', 'SecurityError')
      }
      Object.defineProperty(window, 'sessionStorage', { get })
    },
  }, async ({ page, token, openRow, heading }) => {
    await signIn(page, token)
    await openRow()
    await heading('Plant 7').waitFor()
  })

  test('a sign-in that was closed can be opened again', {
    isSignedOut: true,
    place: '#plants/7',
  }, async ({ page, refusal, press, heading, token, tokenField, rows, button }) => {
    const close = async () => {
      await tokenField.waitFor()
      await page.keyboard.press('Escape')
      await shows(refusal, 'Sign in to see what is in the store.')
      expect(await button('Sign out').isVisible()).toBe(false)
      await press('Sign in')
      await signIn(page, token)
    }
    await close()
    await heading('Plant 7').waitFor()

    await press('Close')
    await page.evaluate(() => sessionStorage.clear())
    await press('Show')
    await close()
    await shows(rows, '1 row, no more')
    expect(await button('Sign out').isVisible()).toBe(true)
  })

  test('the commands for a token name none that is taken', { isSignedOut: true }, async ({
    page,
    tokenField,
  }) => {
    const commands = async () => {
      await tokenField.waitFor()
      return page.locator('.sign-in .command').allTextContents()
    }
    const [installed = '', ...others] = await commands()
    expect(installed).toMatch(
      /^plant-store token create --name page-[a-z0-9]+ --expires 12h$/,
    )
    expect(others).toEqual([`npx --yes pnpm@12 ${installed}`])
    await page.reload()
    expect(await commands()).not.toContain(installed)
  })

  test('a search that is stopped at once shows no row of another list', async ({
    press,
    rows,
    ids,
    filter,
    store,
  }) => {
    await shows(rows, '1 row, no more')
    const release = store.holdListsAfter(0)
    await filter('name contains').fill('none')
    await press('Show')
    await press('Stop')
    await shows(rows, '0 rows, more follow')
    expect(await ids()).toEqual([])
    release()
  })
})

test('cells, ids and code are not translated', { isSignedOut: true }, async ({
  page,
  openRow,
  form,
  token,
  tokenField,
}) => {
  const isTranslated = () =>
    [...document.querySelectorAll<HTMLElement>('td, tbody th, h2, code, textarea')]
      .filter(element => element.translate)
      .map(element => element.textContent)
  await tokenField.waitFor()
  expect(await page.evaluate(isTranslated)).toEqual(['Sign in'])
  await signIn(page, token)
  await openRow()
  await form.waitFor()
  expect(await page.evaluate(isTranslated)).toEqual([])
})
