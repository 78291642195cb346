import { scopesByChoice } from '@plant-store/access'
import { plant } from '@plant-store/domain/testing'
import type { Route } from '@plant-store/harness/browser'
import { expect } from 'vitest'
import {
  alert,
  answer,
  button,
  cells,
  focused,
  form,
  goTo,
  hash,
  ids,
  member,
  openRow,
  page,
  press,
  problem,
  reload,
  replace,
  rows,
  save,
  shows,
  signIn,
  signInAlert,
  status,
  store,
  stored,
  test,
  token,
  tokenField,
} from './page.ts'

const min = -9223372036854775808n
const max = 9223372036854775807n

test('a token is kept in its tab until the user signs out', {
  isSignedOut: true,
}, async () => {
  await expect.poll(() => tokenField.getAttribute('type')).toBe('password')
  await signIn('plantstore_wrong')
  await shows(signInAlert, '(40102)')
  await signIn(token)
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

  await press('Sign out')
  await tokenField.waitFor()
  expect(await ids()).toEqual([])
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
})

test('integers are exact when they are typed, saved, listed and in the URL', {
  plants: [],
}, async () => {
  const all = [min, -1n, 0n, 9007199254740993n, max]
  for (const id of all.toReversed()) {
    await press('New')
    await member('id').waitFor()
    await page.keyboard.type(`${id}`)
    await member('name').fill(`plant ${id}`)
    await save(id)
  }
  await expect.poll(ids).toEqual(all.map(id => `${id}`))
  const head = page.getByRole('columnheader', { name: 'id' })
  expect(await head.evaluate(cell => getComputedStyle(cell).textAlign)).toBe('right')
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

test('an id and a line break are trimmed, and what is no id is refused', async () => {
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
  await save(-5)
  expect(await stored(-5n)).toEqual({ id: -5n, name: 'Aloe' })
})

test('a text is shown by its start, and keeps its bytes unless it is edited', {
  plants: [[7n, 'Ficus', `a\r\nb\rc\td\u202e\u2066e🪴${'x'.repeat(100_000)}`]],
}, async () => {
  await expect
    .poll(cells)
    .toEqual(['Ficus', `a ↵ b ↵ c ⇥ dU+202EU+2066e🪴${'x'.repeat(188)}… 99,812 more`])
  await openRow()
  await member('name').fill('mine')
  await save()
  const tag = `a\r\nb\rc\td\u202e\u2066e🪴${'x'.repeat(100_000)}`
  expect(await stored(7n)).toEqual({ id: 7n, name: 'mine', tag })
})

test('a text with CR says that an edit makes it LF', {
  plants: [[7n, 'a\r\nb']],
}, async () => {
  await openRow()
  await member('name').fill('a\nb\nc')
  await shows(problem, 'saved with LF')
  await member('name').fill('a\nb')
  expect(await problem.count()).toBe(0)
  await member('tag').fill('x')
  await save()
  expect(await stored(7n)).toEqual(plant(7n, 'a\r\nb', 'x'))
})

test('an empty tag is none, unless an empty text is stored and kept', {
  plants: [
    [7n, 'seven', ''],
    [8n, 'eight', 'x'],
    [9n, 'nine', ''],
  ],
}, async () => {
  const keep = form.getByLabel('“” empty text')
  await openRow('7')
  await member('name').fill('mine')
  await save()
  await openRow('8')
  expect(await keep.count()).toBe(0)
  await member('tag').fill('')
  await save(8)
  await openRow('9')
  await keep.uncheck()
  await save(9)

  const all = await Promise.all([7n, 8n, 9n].map(stored))

  const untagged = [plant(8n, 'eight'), plant(9n, 'nine')]
  expect(all).toEqual([plant(7n, 'mine', ''), ...untagged])
})

const lose = (route: Route) => route.abort()

for (const times of [1, 9]) {
  test(`a save that is made, but unanswered ${times} × is saved in the end`, {
    place: '#plants/7',
  }, async () => {
    await member('name').fill('mine')
    let left = times
    await answer('PUT', async route => {
      left--
      if (left < 0) {
        return route.continue()
      }
      await route.fetch()
      await route.abort()
    })

    await press('Save')

    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
  })
}

test('a save that is lost says so, or that it is unknown', {
  place: '#plants/7',
}, async () => {
  await member('name').fill('mine')
  await answer('PUT', lose)
  await press('Save')
  await shows(alert, 'It was not saved: the store did not answer')

  await answer('GET', lose)
  await press('Save')
  await shows(alert, 'It is unknown whether it was saved: the store did not answer')
  expect(await member('name').inputValue()).toBe('mine')

  await replace(7n, 'theirs')
  await page.unrouteAll()
  await answer('GET', lose)
  await press('Save')
  await shows(alert, 'It was not saved: the store did not answer')

  await page.unrouteAll()
  await press('Save')
  await press('Save mine over it')
  await shows(status, 'Plant 7 is saved.')
})

test('a member that only a newer page knows survives a save', async () => {
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
  await save()
  expect(bodies).toContain('{"height_mm":9007199254740993,"name":"mine","tag":"tree"}')
})

test('a token that may only read is said to, before somebody types', {
  isSignedOut: true,
}, async () => {
  await tokenField.waitFor()
  await signIn(store.token(scopesByChoice.read))

  await page.getByText('Read only').waitFor()

  await openRow()
  expect(await member('name').getAttribute('readonly')).toBe('')
  for (const name of ['Save', 'Delete', 'New']) {
    expect(await button(name).count(), name).toBe(0)
  }
  await press('Close')
  await press('Sign out')
  await signIn(token)
  await button('New').waitFor()
})

for (const [kind, number, makeToken] of [
  ['is unknown', 40102, () => 'plantstore_wrong'],
  ['may only read', 40301, () => store.token(scopesByChoice.read)],
] as const) {
  test(`a save whose token ${kind} asks for another over the text`, async () => {
    await openRow()
    await member('name').fill('mine')
    const other = makeToken()
    await page.evaluate(to => sessionStorage.setItem('/ token', to), other)
    await press('Save')
    await shows(signInAlert, `(${number})`)

    await press('Go on editing')
    await shows(alert, `(${number})`)
    // A token that may read is kept.
    expect(await page.locator('#sign-out').isVisible()).toBe(number === 40301)
    await expect.poll(focused).toBe('Save')
    await press('Save')
    await signIn(token)

    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
  })
}
