import { expect } from 'vitest'
import {
  button,
  cells,
  empty,
  filter,
  firstId,
  form,
  heading,
  ids,
  openRow,
  page,
  press,
  refusal,
  requested,
  rows,
  several,
  shows,
  signIn,
  signInAlert,
  store,
  test,
  token,
  tokenField,
} from './page.ts'

test('invisible characters are shown by their code, spaces as they are', {
  plants: [
    [7n, '\u00ad\u200b\u3164\u{e0041}\u2028', 'a\u202eb'],
    [8n, '', '–'],
    [9n, '(empty)'],
    [10n, 'two  spaces'],
  ],
}, async () => {
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

test('spelling has no sign, and Copy gives what is stored', {
  plants: [[7n, '🌶\ufe0f گل\u200cرز\nnext\u200b']],
}, async () => {
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

test('a filter is not capitalised, and keeps what is typed for later', {
  plants: several,
}, async () => {
  const tag = filter('tag')
  await shows(rows, '100 rows, more follow')
  expect(await tag.getAttribute('autocapitalize')).toBe('none')
  await tag.fill('climber')
  await press('Next')
  await expect.poll(firstId).toBe('100')
  expect(await tag.inputValue()).toBe('climber')
})

test('a token is trimmed, and refused if no header can carry it', {
  isSignedOut: true,
}, async () => {
  await signIn('plantstore_ж')
  await shows(signInAlert, 'This is no access token')
  expect(requested.filter(url => url.includes('/plants'))).toEqual([])
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  await signIn(` “Bearer ${token}” \n`)
  await shows(rows, '1 row, no more')
})

test('an empty store names the ways to fill it', { plants: [] }, async () => {
  await shows(empty, 'No plants yet.')
  const codes = await page.locator('#empty code').allTextContents()
  expect(codes).toEqual(['npx --yes pnpm@12 plant-store import FILE'])
  for (const [name, count] of Object.entries({ New: 1, Show: 0, First: 0, Next: 0 })) {
    expect(await button(name).count(), name).toBe(count)
  }
})

test('a filter and a search without a match say what was sought', {
  place: '#plants?tag=none',
}, async () => {
  await shows(empty, 'No plant matches.Looked for tag noneAll plants')
  await shows(rows, '0 rows, no more')
  await filter('tag').fill('')
  await filter('name contains').fill('none')
  await press('Show')
  await shows(empty, 'Looked for name contains none')
})

test('a browser that blocks storage keeps the token in memory', {
  isSignedOut: true,
  prepare: () => {
    const get = () => {
      throw new DOMException('blocked', 'SecurityError')
    }
    Object.defineProperty(window, 'sessionStorage', { get })
  },
}, async () => {
  await signIn(token)
  await openRow()
  await heading('Plant 7').waitFor()
})

test('a sign-in that was closed can be opened again', {
  isSignedOut: true,
  place: '#plants/7',
}, async () => {
  const close = async () => {
    await tokenField.waitFor()
    await page.keyboard.press('Escape')
    await shows(refusal, 'Sign in to see what is in the store.')
    expect(await button('Sign out').isVisible()).toBe(false)
    await press('Sign in')
    await signIn(token)
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

test('the commands for a token name none that is taken', {
  isSignedOut: true,
}, async () => {
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

test('a search that is stopped at once shows no row of another list', async () => {
  await shows(rows, '1 row, no more')
  const release = store.holdListsAfter(0)
  await filter('name contains').fill('none')
  await press('Show')
  await press('Stop')
  await shows(rows, '0 rows, more follow')
  expect(await ids()).toEqual([])
  release()
})

test('cells, ids and code are not translated', { isSignedOut: true }, async () => {
  const isTranslated = () =>
    [...document.querySelectorAll<HTMLElement>('td, tbody th, h2, code, textarea')]
      .filter(element => element.translate)
      .map(element => element.textContent)
  await tokenField.waitFor()
  expect(await page.evaluate(isTranslated)).toEqual(['Sign in'])
  await signIn(token)
  await openRow()
  await form.waitFor()
  expect(await page.evaluate(isTranslated)).toEqual([])
})
