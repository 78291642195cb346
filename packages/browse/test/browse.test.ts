import { scopesByChoice } from '@plant-store/access'
import { plant } from '@plant-store/domain/testing'
import { hasBrowser, type Page } from '@plant-store/harness/browser'
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
    await page.reload()
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
      const words = `must be an integer from ${min} to ${max}`
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
    const { follow, member, press, status } = opened
    await follow('7')
    await member('tag').fill('climber')
    await press('Save')
    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual({ id: 7n, name, tag: 'climber' })
  })

  test('a text with CR says that an edit makes it LF', async () => {
    await fixture.store().fill([{ id: 8n, name: 'a\r\nb' }])
    await using opened = await open()
    const { follow, member, press, status, form } = opened
    const problem = form.locator('.problem').first()
    await follow('8')
    await member('name').fill('a\nb\nc')
    await shows(problem, 'saved with LF')
    await member('name').fill('a\nb')
    await shows(problem, /^$/)
    await member('tag').fill('x')
    await press('Save')
    await shows(status, 'Plant 8 is saved.')
    expect(await stored(8n)).toEqual(plant(8n, 'a\r\nb', 'x'))
  })

  test('an optional text can be empty, or absent', async () => {
    await fill([8n, 'eight', 'x'], [9n, 'nine', 'x'])
    await using opened = await open()
    const { follow, member, press, status } = opened
    await follow('8')
    await member('tag').fill('')
    await press('Save')
    await shows(status, 'Plant 8 is saved.')
    await follow('9')
    await member('has tag').uncheck()
    await press('Save')
    await shows(status, 'Plant 9 is saved.')
    expect(await stored(8n)).toEqual(plant(8n, 'eight', ''))
    expect(await stored(9n)).toEqual({ id: 9n, name: 'nine' })
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

  test('a second entity needs only its description', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open({ as: '' })
    const { page, form, member, press, follow } = opened
    const sent = await addGardens(page)
    await page.reload()
    await signIn(page, fixture.token())
    await follow('plants')
    await shows(page.locator('caption'), 'plants')
    await follow('gardens')
    const gardens = () => page.locator('tbody tr').allTextContents()
    await expect.poll(gardens).toEqual(['90071992547409933'])
    expect(await opened.filter('From id').count()).toBe(0)

    await press('New')
    await member('id').fill('-7')
    await member('height_cm').fill('501')
    await press('Save')
    await shows(form.locator('.problem').nth(1), 'must be an integer from 0 to 500')
    await member('height_cm').fill('500')
    await press('Save')
    await expect.poll(() => sent).toEqual(['{"id":-7,"height_cm":500}'])
  })

  test('a token that may only read loses the buttons that change', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open({ as: fixture.store().token(scopesByChoice.read) })
    const { form, rows, press, follow, button } = opened
    await follow('7')
    await press('Save')
    await shows(form.getByRole('alert'), '(40301)')
    expect(await button('Save').count(), 'Save').toBe(0)
    expect(await button('Delete').count(), 'Delete').toBe(0)
    await press('Close')
    await shows(rows, '1 row, no more')
    expect(await button('New').count(), 'New').toBe(0)
    expect(await stored(7n)).toEqual(plant(7n, 'Ficus', 'tree'))
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
    const { page, requested, member, rows, cells, press, follow, filter } = opened
    await shows(rows, '1 row, no more')
    expect(await cells()).toEqual([markup, markup])
    await filter('tag').fill(markup)
    await press('Show')
    await follow('7')
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

/** Adds an entity to the description, without PUT and DELETE. Returns the bodies sent. */
async function addGardens(page: Page): Promise<readonly (string | null)[]> {
  const sent: (string | null)[] = []
  const properties = {
    id: { $ref: '#/components/schemas/PlantId' },
    height_cm: { type: 'integer', minimum: 0, maximum: 500 },
  }
  const items = { type: 'object', properties, required: ['id'] }
  const content = { 'application/json': { schema: { type: 'array', items } } }
  const get = { tags: ['gardens'], responses: { 200: { content } } }
  const post = { tags: ['gardens'], responses: {} }
  await page.route('**/openapi.json', async route => {
    const answer = await route.fetch()
    const { paths, ...others } = JSON.parse(await answer.text())
    const json = { ...others, paths: { '/gardens': { get, post }, ...paths } }
    await route.fulfill({ json })
  })
  await page.route('**/gardens*', async route => {
    const request = route.request()
    let body = '[{"id":9007199254740993,"height_cm":3,"new":1}]'
    if (request.method() === 'POST') {
      sent.push(request.postData())
      body = '{"id":-7}'
    }
    await route.fulfill({ contentType: 'application/json', body })
  })
  return sent
}
