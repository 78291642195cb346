import { scopesByChoice } from '@plant-store/access'
import { plant } from '@plant-store/domain/testing'
import type { Route } from '@plant-store/harness/browser'
import { expect } from 'vitest'
import { type Opened, shows, signIn, test } from './page.ts'

const min = -9223372036854775808n
const max = 9223372036854775807n

test('a token is kept in its tab until the user signs out', {
  isSignedOut: true,
}, async ({ page, rows, press, ids, tokenField, signInAlert, reload, token }) => {
  await expect.poll(() => tokenField.getAttribute('type')).toBe('password')
  await signIn(page, 'plantstore_wrong')
  await shows(signInAlert, '(40102)')
  await signIn(page, token)
  await shows(rows, '1 row, no more')

  const places = () => ({
    url: location.hash,
    local: localStorage.length,
    cookie: document.cookie,
    session: { ...sessionStorage },
  })
  expect(await page.evaluate(places)).toEqual({
    url: '#plants',
    local: 0,
    cookie: '',
    session: { '/ token': token },
  })
  await reload()
  await shows(rows, '1 row, no more')
  const tab = await page.context().newPage()
  await tab.goto(page.url())
  await tab.getByLabel('Access token').waitFor()
  expect(await tab.locator('tbody tr').count()).toBe(0)

  await press('Sign out')
  await tokenField.waitFor()
  expect(await ids()).toEqual([])
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
})

test('integers are exact when they are typed, saved, listed and in the URL', {
  plants: [],
}, async ({ form, member, status, ids, press, goTo, hash, store }) => {
  const all = [min, -1n, 0n, 9007199254740993n, max]
  for (const id of all.toReversed()) {
    await press('New')
    await member('id').fill(`${id}`)
    await member('name').fill(`plant ${id}`)
    await press('Save')
    await shows(status, `Plant ${id} is saved.`)
  }
  await expect.poll(ids).toEqual(all.map(id => `${id}`))
  const { plants } = await store.plants.list({ limit: 9 })
  expect(plants).toEqual(all.map(id => plant(id, `plant ${id}`)))

  for (const id of all) {
    await expect.poll(hash).toBe('#plants')
    await goTo(`#plants/${id}`)
    await shows(form.getByRole('heading'), `Plant ${id}`)
    expect(await member('name').inputValue(), `${id}`).toBe(`plant ${id}`)
    await press('Close')
  }
})

test('an id and a line break are trimmed, and what is no id is refused', async ({
  press,
  member,
  problem,
  status,
  stored,
}) => {
  const outside = `The id must be an integer from ${min} to ${max}.`
  const noDigits = 'The id takes digits and a minus sign only.'
  await press('New')
  for (const [wrong, words] of [
    ...['', '-', '-0', '07', `${max + 1n}`, `${min - 1n}`].map(id => [id, outside]),
    ...['9,007', '1.0', '1e3', '−5', '0x10'].map(id => [id, noDigits]),
  ] as const) {
    await member('id').fill(`${wrong}`)
    await press('Save')
    expect(await problem.textContent(), wrong).toBe(words)
  }
  await member('id').fill(' -5\t')
  await member('name').fill('Aloe\n')
  await press('Save')
  await shows(status, 'Plant -5 is saved.')
  expect(await stored(-5n)).toEqual({ id: -5n, name: 'Aloe' })
})

test('a text is shown by its start, and keeps its bytes unless it is edited', {
  plants: [[7n, 'Ficus', `a\r\nb\rc\td\u202e\u2066e🪴${'x'.repeat(100_000)}`]],
}, async ({ cells, openRow, member, press, status, stored }) => {
  await expect
    .poll(cells)
    .toEqual(['Ficus', `a ↵ b ↵ c ⇥ dU+202EU+2066e🪴${'x'.repeat(188)}… 99,812 more`])
  await openRow()
  await member('name').fill('mine')
  await press('Save')
  await shows(status, 'Plant 7 is saved.')
  const tag = `a\r\nb\rc\td\u202e\u2066e🪴${'x'.repeat(100_000)}`
  expect(await stored(7n)).toEqual({ id: 7n, name: 'mine', tag })
})

test('a text with CR says that an edit makes it LF', {
  plants: [[7n, 'a\r\nb']],
}, async ({ openRow, member, press, status, problem, stored }) => {
  await openRow()
  await member('name').fill('a\nb\nc')
  await shows(problem, 'saved with LF')
  await member('name').fill('a\nb')
  expect(await problem.count()).toBe(0)
  await member('tag').fill('x')
  await press('Save')
  await shows(status, 'Plant 7 is saved.')
  expect(await stored(7n)).toEqual(plant(7n, 'a\r\nb', 'x'))
})

test('an empty tag is none, unless an empty text is stored and kept', {
  plants: [
    [7n, 'seven', ''],
    [8n, 'eight', 'x'],
    [9n, 'nine', ''],
  ],
}, async ({ openRow, form, member, press, status, stored }) => {
  const keep = form.getByLabel('“” empty text')
  await openRow('7')
  await member('name').fill('mine')
  await press('Save')
  await shows(status, 'Plant 7 is saved.')
  await openRow('8')
  expect(await keep.count()).toBe(0)
  await member('tag').fill('')
  await press('Save')
  await shows(status, 'Plant 8 is saved.')
  await openRow('9')
  await keep.uncheck()
  await press('Save')
  await shows(status, 'Plant 9 is saved.')

  const all = await Promise.all([7n, 8n, 9n].map(stored))

  const untagged = [plant(8n, 'eight'), plant(9n, 'nine')]
  expect(all).toEqual([plant(7n, 'mine', ''), ...untagged])
})

/** Fates of a request: its change is not made, or is made and nobody hears of it. */
const fates = {
  lost: (route: Route) => route.abort(),
  async 'made, but unanswered'(route: Route) {
    await route.fetch()
    await route.abort()
  },
}

for (const [fate, times] of [
  ['made, but unanswered', 1],
  ['lost', 1],
  ['made, but unanswered', 9],
] as const) {
  test(`a save that is ${fate} ${times} × is saved in the end`, {
    place: '#plants/7',
  }, async ({ answer, member, status, press, stored }) => {
    await member('name').fill('mine')
    let left = times as number
    await answer('PUT', route => {
      left--
      return left < 0 ? route.continue() : fates[fate](route)
    })

    await press('Save')

    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
  })
}

test('a save that is lost says so, or that it is unknown', {
  place: '#plants/7',
}, async ({ page, answer, alert, member, status, press, replace }) => {
  await member('name').fill('mine')
  await answer('PUT', fates.lost)
  await press('Save')
  await shows(alert, 'It was not saved: the store did not answer')

  await answer('GET', fates.lost)
  await press('Save')
  await shows(alert, 'It is unknown whether it was saved: the store did not answer')
  expect(await member('name').inputValue()).toBe('mine')

  await replace(7n, 'theirs')
  await page.unrouteAll()
  await answer('GET', fates.lost)
  await press('Save')
  await shows(alert, 'It was not saved: the store did not answer')

  await page.unrouteAll()
  await press('Save')
  await press('Save mine over it')
  await shows(status, 'Plant 7 is saved.')
})

test('a member that only a newer page knows survives a save', async ({
  page,
  openRow,
  member,
  press,
  status,
}) => {
  const bodies: (string | null)[] = []
  await page.route('**/plants/7', async route => {
    bodies.push(route.request().postData())
    const answer = await route.fetch()
    const text = await answer.text()
    const body = text.replace('{', '{"height_mm":9007199254740993,')
    await route.fulfill({ response: answer, body })
  })
  await openRow()
  await member('name').fill('mine')
  await press('Save')
  await shows(status, 'Plant 7 is saved.')
  expect(bodies).toContain('{"height_mm":9007199254740993,"name":"mine","tag":"tree"}')
})

test('a token that may only read is said to, before somebody types', {
  isSignedOut: true,
}, async ({ page, openRow, button, member, press, token, store, tokenField }) => {
  await tokenField.waitFor()
  await signIn(page, store.token(scopesByChoice.read))

  await page.getByText('Read only').waitFor()

  await openRow()
  expect(await member('name').getAttribute('readonly')).toBe('')
  await press('Close')
  for (const name of ['Save', 'Delete', 'New']) {
    expect(await button(name).count(), name).toBe(0)
  }
  await press('Sign out')
  await signIn(page, token)
  await button('New').waitFor()
})

for (const [kind, number, makeToken] of [
  ['is unknown', 40102, () => 'plantstore_wrong'],
  ['may only read', 40301, ({ store }: Opened) => store.token(scopesByChoice.read)],
] as const) {
  test(`a save whose token ${kind} asks for another over the text`, async opened => {
    const { page, member, press, openRow, status, focused, token, stored } = opened
    const { alert, signInAlert } = opened
    await openRow()
    await member('name').fill('mine')
    const other = makeToken(opened)
    await page.evaluate(to => sessionStorage.setItem('/ token', to), other)
    await press('Save')
    await shows(signInAlert, `(${number})`)

    await press('Go on editing')
    await shows(alert, `(${number})`)
    // A token that may read is kept.
    expect(await page.locator('#sign-out').isVisible()).toBe(number === 40301)
    await expect.poll(focused).toBe('Save')
    await press('Save')
    await signIn(page, token)

    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
  })
}

const markup = '<img src=x onerror=alert(1)>'

test('markup is text everywhere', { plants: [[7n, markup, markup]] }, async opened => {
  const { page, requested, member, cells, press, openRow, filter, replace } = opened
  await expect.poll(cells).toEqual([markup, markup])
  await filter('tag').fill(markup)
  await press('Show')
  await openRow()
  expect(await member('name').inputValue()).toBe(markup)
  await member('name').fill(`${markup}2`)
  await replace(7n, `${markup}3`)
  await press('Save')
  await opened.button('Keep what is there').waitFor()
  expect(await page.locator('img').count()).toBe(0)
  expect(requested.filter(url => url.endsWith('/x'))).toEqual([])
})

test('the keyboard is enough, from the token to a saved plant', {
  isSignedOut: true,
}, async ({ page, form, status, rows, focused, stored, token, tokenField }) => {
  const { keyboard } = page
  const tabTo = async (text: string) => {
    const passed: unknown[] = [await focused()]
    while (passed.at(-1) !== text && passed.length <= 20) {
      await keyboard.press('Tab')
      passed.push(await focused())
    }
    expect(passed.at(-1), `tabbed through ${passed.join(', ')}`).toBe(text)
  }
  await tokenField.waitFor()
  await keyboard.type(token)
  await keyboard.press('Enter')
  await shows(rows, '1 row, no more')

  await tabTo('New')
  await keyboard.press('Enter')
  await form.waitFor()
  await keyboard.type('-5')
  await keyboard.press('Tab')
  await keyboard.type('Aloe')
  await tabTo('Save')
  await keyboard.press('Enter')
  await shows(status, 'Plant -5 is saved.')
  expect(await stored(-5n)).toEqual({ id: -5n, name: 'Aloe' })

  await tabTo('7')
  await keyboard.press('Enter')
  await form.waitFor()
  await keyboard.press('Escape')
  await expect.poll(focused).toBe('7')
})
