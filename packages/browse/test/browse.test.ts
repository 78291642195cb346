import { scopesByChoice } from '@plant-store/access'
import { plant } from '@plant-store/domain/testing'
import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { shows, signIn, usePage } from './page.ts'
import { type Fate, startProxy } from './store.ts'

const min = -9223372036854775808n
const max = 9223372036854775807n

describe('the page', needs('chromium', hasBrowser), () => {
  const { open, stored, fill, replace, ...fixture } = usePage()

  test('a token is kept in its tab until the user signs out', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open({ as: '' })
    const { page, rows, press, ids } = opened
    const field = page.getByLabel('Access token')
    await expect.poll(() => field.getAttribute('type')).toBe('password')
    await signIn(page, 'plantstore_wrong')
    await shows(page.locator('.sign-in').getByRole('alert'), '(40102)')
    await signIn(page, fixture.token())
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
      session: { '/ token': fixture.token() },
    })
    await opened.reload()
    await shows(rows, '1 row, no more')
    const tab = await page.context().newPage()
    await tab.goto(`${fixture.store().url}/browse`)
    await tab.getByLabel('Access token').waitFor()
    expect(await tab.locator('tbody tr').count()).toBe(0)

    await press('Sign out')
    await field.waitFor()
    expect(await ids()).toEqual([])
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  })

  test('integers are exact when they are typed, saved and listed', async () => {
    await fill()
    await using opened = await open()
    const { member, status, ids, press } = opened
    const all = [min, -1n, 0n, 9007199254740993n, max]
    for (const id of all.toReversed()) {
      await press('New')
      await member('id').fill(`${id}`)
      await member('name').fill(`plant ${id}`)
      await press('Save')
      await shows(status, `Plant ${id} is saved.`)
    }
    await expect.poll(ids).toEqual(all.map(id => `${id}`))
    const { plants } = await fixture.store().plants.list({ limit: 9 })
    const saved = all.map(id => plant(id, `plant ${id}`))
    expect(plants).toEqual(saved)
  })

  test('integers are exact in the URL', async () => {
    const all = [min, -1n, 0n, 9007199254740993n, max]
    const plants = all.map(id => plant(id, `plant ${id}`))
    await fixture.store().fill(plants)
    await using opened = await open()
    const { page, form, member, press, hash } = opened
    for (const id of all) {
      await page.goto(`${fixture.store().url}/browse#plants/${id}`)
      await shows(form.getByRole('heading'), `Plant ${id}`)
      expect(await member('name').inputValue(), `${id}`).toBe(`plant ${id}`)
      await press('Close')
      await expect.poll(hash).toBe('#plants')
    }
  })

  test('a text that is no integer is refused', async () => {
    await fill()
    await using opened = await open()
    const { form, member, press } = opened
    await press('New')
    const problem = form.locator('.problem').first()
    const outsideInt64 = [`${max + 1n}`, `${min - 1n}`]
    for (const wrong of ['', '-', '-0', '07', ...outsideInt64]) {
      await member('id').fill(wrong)
      await press('Save')
      const words = `The id must be an integer from ${min} to ${max}.`
      expect(await problem.textContent(), wrong).toBe(words)
    }
  })

  test('a text is shown by its start, with signs for line breaks', async () => {
    const name = `a\r\nb\rc\td\u202e\u2066e🪴${'x'.repeat(100_000)}`
    await fixture.store().fill([{ id: 7n, name, tag: 'tree' }])
    await using opened = await open()
    const { rows, cells } = opened
    await shows(rows, '1 row, no more')
    expect(await cells()).toEqual([
      `a ↵ b ↵ c ⇥ dU+202EU+2066e🪴${'x'.repeat(188)}… 99,812 more`,
      'tree',
    ])
  })

  test('a text that nobody edits keeps its bytes', async () => {
    const name = `a\r\nb\rc\td\u202e\u2066e🪴${'x'.repeat(100_000)}`
    await fixture.store().fill([{ id: 7n, name, tag: 'tree' }])
    await using opened = await open()
    const { openRow, member, press, status } = opened
    await openRow('7')
    await member('tag').fill('climber')
    await press('Save')
    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual({ id: 7n, name, tag: 'climber' })
  })

  test('a text with CR says that an edit makes it LF', async () => {
    await fixture.store().fill([{ id: 8n, name: 'a\r\nb' }])
    await using opened = await open()
    const { openRow, member, press, status, form } = opened
    const problem = form.locator('.problem').first()
    await openRow('8')
    await member('name').fill('a\nb\nc')
    await shows(problem, 'saved with LF')
    await member('name').fill('a\nb')
    expect(await problem.count()).toBe(0)
    await member('tag').fill('x')
    await press('Save')
    await shows(status, 'Plant 8 is saved.')
    expect(await stored(8n)).toEqual(plant(8n, 'a\r\nb', 'x'))
  })

  test('an empty tag is none, unless an empty text is stored and kept', async () => {
    await fill([7n, 'seven', ''], [8n, 'eight', 'x'], [9n, 'nine', ''])
    await using opened = await open()
    const { openRow, form, member, press, status } = opened
    await openRow('7')
    await member('name').fill('mine')
    await press('Save')
    await shows(status, 'Plant 7 is saved.')
    await openRow('8')
    expect(await form.getByLabel('“” empty text').count()).toBe(0)
    await member('tag').fill('')
    await press('Save')
    await shows(status, 'Plant 8 is saved.')
    await openRow('9')
    await form.getByLabel('“” empty text').uncheck()
    await press('Save')
    await shows(status, 'Plant 9 is saved.')

    const all = await Promise.all([7n, 8n, 9n].map(stored))

    const names = [
      { id: 8n, name: 'eight' },
      { id: 9n, name: 'nine' },
    ]
    expect(all).toEqual([plant(7n, 'mine', ''), ...names])
  })

  test.each([
    { fate: 'made, but unanswered', times: 1 },
    { fate: 'lost', times: 1 },
    { fate: 'made, but unanswered', times: 9 },
  ] as const)('a save that is $fate $times × is saved in the end', async lost => {
    using proxy = await startProxy(fixture.store().url)
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open({ url: proxy.url, place: '#plants/7' })
    const { member, status, press } = opened
    await member('name').fill('mine')
    proxy.fate = losePuts(lost.fate, lost.times)

    await press('Save')

    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
  })

  test('a save that is lost says so, or that it is unknown', async () => {
    using proxy = await startProxy(fixture.store().url)
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open({ url: proxy.url, place: '#plants/7' })
    const { form, member, status, press } = opened
    const alert = form.getByRole('alert')
    await member('name').fill('mine')
    proxy.fate = losePuts('lost', 9)
    await press('Save')
    await shows(alert, 'It was not saved: the store did not answer')

    proxy.fate = () => 'lost'
    await press('Save')
    await shows(alert, 'It is unknown whether it was saved: the store did not answer')
    expect(await member('name').inputValue()).toBe('mine')

    await replace(7n, 'theirs')
    proxy.fate = method => (method === 'GET' ? 'lost' : 'passed')
    await press('Save')
    await shows(alert, 'It was not saved: the store did not answer')

    proxy.fate = () => 'passed'
    await press('Save')
    await press('Save mine over it')
    await shows(status, 'Plant 7 is saved.')
  })

  test('a member that only a newer page knows survives a save', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open()
    const { page, openRow, member, press } = opened
    const bodies: (string | null)[] = []
    await page.route('**/plants/7', async route => {
      bodies.push(route.request().postData())
      const answer = await route.fetch()
      const text = await answer.text()
      const body = text.replace('{', '{"height_mm":9007199254740993,')
      await route.fulfill({ response: answer, body })
    })
    await openRow('7')
    await member('name').fill('mine')
    await press('Save')
    await shows(opened.status, 'Plant 7 is saved.')
    expect(bodies).toContain('{"height_mm":9007199254740993,"name":"mine","tag":"tree"}')
  })

  test('a token that may only read is said to, before somebody types', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open({ as: fixture.store().token(scopesByChoice.read) })
    const { page, openRow, button, member, press } = opened

    await page.getByText('Read only').waitFor()

    await openRow('7')
    expect(await member('name').getAttribute('readonly')).toBe('')
    await press('Close')
    for (const name of ['Save', 'Delete', 'New']) {
      expect(await button(name).count(), name).toBe(0)
    }
    await press('Sign out')
    await signIn(page, fixture.token())
    await button('New').waitFor()
  })

  test('a refused save asks for another token, and keeps the text', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open()
    const { page, form, member, press, openRow, status, focused } = opened
    await openRow('7')
    await member('name').fill('mine')
    const token = fixture.store().token(scopesByChoice.read)
    await page.evaluate(to => sessionStorage.setItem('/ token', to), token)
    await press('Save')
    await shows(page.locator('.sign-in').getByRole('alert'), '(40301)')

    await press('Go on editing')
    await shows(form.getByRole('alert'), '(40301)')
    await expect.poll(focused).toBe('Save')
    await press('Save')
    await signIn(page, fixture.token())

    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
  })

  test('a token that expires while a form is open is asked for over it', async () => {
    await fill([7n, 'Ficus', 'tree'])
    const short = fixture.store().token()
    await using opened = await open({ as: short, place: '#plants/7' })
    const { page, member, status, press } = opened
    await member('name').fill('mine')
    fixture.store().expire(short)
    await press('Save')
    await page.getByLabel('Access token').waitFor()
    expect(await member('name').inputValue()).toBe('mine')
    await signIn(page, fixture.token())
    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
  })

  test('markup is text everywhere', async () => {
    const markup = '<img src=x onerror=alert(1)>'
    await fill([7n, markup, markup])
    await using opened = await open()
    const { page, requested, member, rows, cells, press, openRow, filter } = opened
    await shows(rows, '1 row, no more')
    expect(await cells()).toEqual([markup, markup])
    await filter('tag').fill(markup)
    await press('Show')
    await openRow('7')
    expect(await member('name').inputValue()).toBe(markup)
    await member('name').fill(`${markup}2`)
    await replace(7n, `${markup}3`)
    await press('Save')
    await opened.button('Keep what is there').waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expect(requested.filter(url => url.endsWith('/x'))).toEqual([])
  })

  test('the keyboard is enough, from the token to a saved plant', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open({ as: '' })
    const { page, form, status, rows, focused } = opened
    const { keyboard } = page
    const tabTo = async (text: string) => {
      const passed: unknown[] = [await focused()]
      while (passed.at(-1) !== text && passed.length <= 20) {
        await keyboard.press('Tab')
        passed.push(await focused())
      }
      expect(passed.at(-1), `tabbed through ${passed.join(', ')}`).toBe(text)
    }
    await page.getByLabel('Access token').waitFor()
    await keyboard.type(fixture.token())
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
})

/** Returns the fates of changes if some attempts of a save are lost. */
function losePuts(fate: Fate, times: number): (method: string) => Fate {
  let left = times
  return method => {
    if (method !== 'PUT' || left === 0) {
      return 'passed'
    }
    left--
    return fate
  }
}
