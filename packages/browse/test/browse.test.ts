import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { scopesByChoice } from '@plant-store/access'
import { type Plant, parsePlantId } from '@plant-store/domain'
import { type Browser, hasBrowser, launchBrowser, type Page } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startProxy, startStore } from './store.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const min = -(2n ** 63n)
const max = 2n ** 63n - 1n
const ficus = { id: 7n, name: 'Ficus', tag: 'tree' }

describe('the page', needs('chromium', hasBrowser), () => {
  let store: Awaited<ReturnType<typeof startStore>>
  let browser: Browser
  let token: string
  beforeAll(async () => {
    store = await startStore()
    browser = await launchBrowser()
    token = store.token()
  })
  afterAll(async () => {
    await browser.close()
    await store[Symbol.asyncDispose]()
  })

  /** Opens the page, and is signed in unless another token is given. */
  async function open({ place = '', as = token, url = store.url, ...options }: Opening = {}) {
    const context = await browser.newContext(options)
    const page = await context.newPage()
    const [requested, complaints]: string[][] = [[], []]
    page.on('request', request => requested?.push(request.url()))
    page.on('pageerror', error => complaints?.push(error.message))
    page.on('console', message => {
      const isExpected = /the server responded with a status of 4|net::ERR_/.test(message.text())
      if (message.type() === 'error' && !isExpected) complaints?.push(message.text())
    })
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
        console.error(`against the policy: ${violatedDirective} ${blockedURI}`),
      )
    })
    await page.goto(`${url}/browse${place}`)
    if (as !== '') await signIn(page, as)
    return {
      page,
      requested: requested as string[],
      async [Symbol.asyncDispose]() {
        await context.close()
        const elsewhere = requested?.filter(each => !each.startsWith(url) && !each.startsWith('data:'))
        expect([complaints, elsewhere]).toEqual([[], []])
      },
    }
  }

  const stored = (id: bigint): Promise<Plant | undefined> =>
    store.plants.find(parsePlantId(id)).then(
      ({ plant }) => plant,
      () => undefined,
    )

  test('signs in with a token that the store accepts, in this tab until it signs out', async () => {
    await store.fill([ficus])
    await using opened = await open({ as: '' })
    const { page } = opened
    const field = page.getByLabel('Access token')
    await expect.poll(() => field.getAttribute('type')).toBe('password')
    expect(await page.getByText('plant-store token create --name me --scope read').count()).toBe(1)
    await signIn(page, 'plantstore_wrong')
    await shows(page.getByRole('alert').first(), /\(40102\)/)
    await signIn(page, token)
    await shows(rowsOf(page), '1 rows, no more')
    expect(await page.evaluate(() => [location.hash, localStorage.length, document.cookie])).toEqual([
      '#plants',
      0,
      '',
    ])
    const kept = await page.evaluate(() => Object.entries(sessionStorage))
    expect(kept).toEqual([['/ token', token]])

    await page.reload()
    await shows(rowsOf(page), '1 rows, no more')
    const tab = await page.context().newPage()
    await tab.goto(`${store.url}/browse`)
    await tab.getByLabel('Access token').waitFor()
    expect(await tab.locator('tbody tr').count()).toBe(0)

    await page.getByRole('button', { name: 'Sign out' }).click()
    await field.waitFor()
    expect(await page.locator('tbody tr').count()).toBe(0)
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  })

  test('integers are exact when they are typed, saved, listed and in the URL', async () => {
    await store.fill([])
    await using opened = await open()
    const { page } = opened
    const ids = [min, -1n, 0n, 2n ** 53n + 1n, max]
    for (const id of [...ids].reverse()) {
      await page.getByRole('button', { name: 'New' }).click()
      const field = dialog(page).getByLabel('id', { exact: true })
      for (const wrong of ['', '-', '-0', '07', '1.0', '1e3', `${max + 1n}`, `${min - 1n}`]) {
        await field.fill(wrong)
        await dialog(page).getByRole('button', { name: 'Save' }).click()
        await shows(dialog(page).locator('.problem').first(), `must be an integer from ${min} to ${max}`)
      }
      await field.fill(`${id}`)
      await dialog(page).getByLabel('name', { exact: true }).fill(`plant ${id}`)
      await dialog(page).getByRole('button', { name: 'Save' }).click()
      await shows(page.getByRole('status'), `Plant ${id} is saved.`)
    }
    await shows(rowsOf(page), '5 rows, no more')
    expect(await page.locator('tbody th').allTextContents()).toEqual(ids.map(id => `${id}`))
    expect((await store.plants.list({ limit: 9 })).plants).toEqual(
      ids.map(id => ({ id, name: `plant ${id}` })),
    )
    for (const id of ids) {
      await page.goto(`${store.url}/browse#plants/${id}`)
      await expect
        .poll(() => dialog(page).getByLabel('name', { exact: true }).inputValue())
        .toBe(`plant ${id}`)
      expect(await dialog(page).getByLabel('id', { exact: true }).inputValue()).toBe(`${id}`)
      await dialog(page).getByRole('button', { name: 'Close' }).click()
      await expect.poll(() => new URL(page.url()).hash).toBe('#plants')
    }
  })

  test('a text that nobody edits keeps its bytes', async () => {
    const name = `a\r\nb\rc\td\u202e\u2066e🪴${'x'.repeat(1_000_000)}`
    await store.fill([
      { id: 7n, name, tag: 'tree' },
      { id: 8n, name: 'a\r\nb' },
      { id: 9n, name: '', tag: '' },
    ])
    await using opened = await open()
    const { page } = opened
    await shows(rowsOf(page), '3 rows, no more')
    const cells = await page.locator('tbody td').allTextContents()
    expect(cells.slice(0, 2)).toEqual([
      `a ↵ b ↵ c ⇥ dU+202EU+2066e🪴${'x'.repeat(188)}… 999,812 more`,
      'tree',
    ])
    expect(cells.slice(2)).toEqual(['a ↵ b', '–', '“”', '“”'])
    const edit = async (id: string, change: () => Promise<void>) => {
      await page.getByRole('link', { name: id, exact: true }).click()
      await dialog(page).waitFor()
      await change()
      await dialog(page).getByRole('button', { name: 'Save' }).click()
      await shows(page.getByRole('status'), `Plant ${id} is saved.`)
    }
    const member = (label: string) => dialog(page).getByLabel(label, { exact: true })
    await edit('7', () => member('tag').fill('climber'))
    expect(await stored(7n)).toEqual({ id: 7n, name, tag: 'climber' })
    await edit('8', async () => {
      await member('name').fill('a\nb\nc')
      await shows(dialog(page).locator('.problem').nth(1), /saved with LF/)
      await member('name').fill('a\nb')
      await shows(dialog(page).locator('.problem').nth(1), '')
      await member('tag').fill('')
      await member('present').check()
    })
    expect(await stored(8n)).toEqual({ id: 8n, name: 'a\r\nb', tag: '' })
    await edit('9', () => member('present').uncheck())
    expect(await stored(9n)).toEqual({ id: 9n, name: '' })
  })

  test('a change by another is not overwritten unless it was shown', async () => {
    await store.fill([ficus])
    await using opened = await open()
    const { page } = opened
    const begin = async () => {
      await store.plants.replace({ ...ficus } as unknown as Plant)
      await page.getByRole('link', { name: '7', exact: true }).click()
      await dialog(page).getByLabel('name', { exact: true }).fill('mine')
    }
    const others = (name: string) => store.plants.replace({ id: 7n, name } as unknown as Plant)
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
    const shown = () => page.locator('#question tbody tr').first().locator('td').allTextContents()

    await begin()
    await others('theirs')
    await press('Save')
    await shows(
      page.getByRole('heading', { name: /This plant was changed since you opened it/ }),
      /Nothing was saved/,
    )
    expect(await shown()).toEqual(['Ficus', 'theirs', 'mine'])
    await press('Go on editing')
    expect(await dialog(page).getByLabel('name', { exact: true }).inputValue()).toBe('mine')
    await press('Save')
    await press('Keep what is there')
    await shows(rowsOf(page), '1 rows, no more')
    expect(await stored(7n)).toEqual({ id: 7n, name: 'theirs' })

    await begin()
    await others('theirs')
    await press('Save')
    await page.getByRole('button', { name: 'Save mine over it' }).waitFor()
    await others('theirs again')
    await press('Save mine over it')
    await expect.poll(shown).toEqual(['Ficus', 'theirs again', 'mine'])
    expect(await stored(7n)).toEqual({ id: 7n, name: 'theirs again' })
    await press('Save mine over it')
    await shows(page.getByRole('status'), /Plant 7 is saved\./)
    expect(await stored(7n)).toEqual({ ...ficus, name: 'mine' })

    await begin()
    await others('theirs')
    await press('Delete')
    await press('Delete 7')
    await shows(page.getByRole('heading', { name: /Nothing was deleted/ }), /changed/)
    await press('Delete 7')
    await shows(page.getByRole('status'), /Plant 7 is deleted\./)
    expect(await stored(7n)).toBeUndefined()

    await store.fill([ficus])
    await page.reload()
    await begin()
    await store.plants.remove(parsePlantId(7n))
    await press('Save')
    await shows(page.getByRole('heading', { name: /This plant was removed/ }), /Nothing was saved/)
    await press('Save mine over it')
    await shows(page.getByRole('status'), /Plant 7 is saved\./)

    await press('New')
    await dialog(page).getByLabel('id', { exact: true }).fill('8')
    await store.plants.replace({ ...ficus, id: 8n } as unknown as Plant)
    await press('Save')
    await page.getByRole('link', { name: 'id 8 exists' }).click()
    await shows(page.getByRole('heading', { name: 'Plant 8' }), 'Plant 8')
    expect(await dialog(page).getByLabel('name', { exact: true }).inputValue()).toBe('Ficus')
  })

  test.each([
    ['made, but unanswered', 1, 'Plant 7 is saved.'],
    ['lost', 1, 'Plant 7 is saved.'],
    ['made, but unanswered', 9, 'Plant 7 is saved.'],
    ['lost', 9, 'It was not saved'],
  ] as const)('a save is %s %i times: the page says in the end what is true', async (fate, times, said) => {
    await store.fill([ficus])
    using proxy = await startProxy(store.url)
    await using opened = await open({ url: proxy.url, place: '#plants/7' })
    const { page } = opened
    await dialog(page).getByLabel('name', { exact: true }).fill('mine')
    let left = times
    proxy.fate = method => (method === 'PUT' && left-- > 0 ? fate : 'passed')
    await page.getByRole('button', { name: 'Save' }).click()
    const place = said.startsWith('Plant') ? page.getByRole('status') : dialog(page).getByRole('alert')
    await shows(place, new RegExp(said))
    const isSaved = said.startsWith('Plant')
    expect((await stored(7n))?.name).toBe(isSaved ? 'mine' : 'Ficus')
    if (!isSaved) expect(await dialog(page).getByLabel('name', { exact: true }).inputValue()).toBe('mine')
  })

  test('a page that nobody answers says that it is unknown', async () => {
    await store.fill([ficus])
    using proxy = await startProxy(store.url)
    await using opened = await open({ url: proxy.url, place: '#plants/7' })
    const { page } = opened
    await dialog(page).getByLabel('name', { exact: true }).fill('mine')
    proxy.fate = () => 'lost'
    await page.getByRole('button', { name: 'Save' }).click()
    await shows(dialog(page).getByRole('alert'), /^It is unknown whether it was saved: no answer/)
    proxy.fate = () => 'passed'
    await page.getByRole('button', { name: 'Save' }).click()
    await shows(page.getByRole('status'), /Plant 7 is saved\./)
  })

  test('goes through 2,500 plants by pages, ids and filters, and keeps its place in the URL', async () => {
    await store.fill(
      Array.from({ length: 2_500 }, (_, n) => ({
        id: BigInt(n),
        name: `n${n}`,
        ...(n % 10 === 0 && { tag: 't&=#' }),
      })),
    )
    await using opened = await open()
    const { page } = opened
    const ids = () => page.locator('tbody th').allTextContents()
    const isAt = async (first: number, last: number, status: string) => {
      await expect.poll(async () => (await ids())[0]).toBe(`${first}`)
      expect((await ids()).at(-1)).toBe(`${last}`)
      await shows(rowsOf(page), status)
    }
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
    await isAt(0, 99, '100 rows, more follow')
    await shows(page.locator('#total'), '2,500 in all')
    expect(await page.getByRole('button', { name: 'Back' }).isDisabled()).toBe(true)
    await press('Next')
    await isAt(100, 199, '100 rows, more follow')
    await press('Next')
    await isAt(200, 299, '100 rows, more follow')
    expect(new URL(page.url()).hash).toBe('#plants?after=199')
    await press('Back')
    await isAt(100, 199, '100 rows, more follow')
    await page.reload()
    await isAt(100, 199, '100 rows, more follow')
    expect(await page.getByLabel('From id').inputValue()).toBe('100')
    await page.getByRole('link', { name: '150', exact: true }).click()
    await dialog(page).getByRole('button', { name: 'Close' }).click()
    await press('Back')
    await isAt(0, 99, '100 rows, more follow')
    await page.goForward()
    await isAt(100, 199, '100 rows, more follow')
    await press('First')
    await isAt(0, 99, '100 rows, more follow')

    await page.getByLabel('From id').fill('2450')
    await page.keyboard.press('Enter')
    await isAt(2450, 2499, '50 rows, no more')
    expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true)
    await page.getByLabel('From id').fill('x')
    await press('Show')
    await shows(page.getByRole('alert').first(), /^From id must be an integer from/)
    await page.getByLabel('From id').fill('')
    await page.getByLabel('tag', { exact: true }).first().fill('t&=#')
    await press('Show')
    await isAt(0, 990, '100 rows, more follow')
    await press('Next')
    await isAt(1000, 1990, '100 rows, more follow')
    await shows(page.locator('#total'), '250 in all')
    const tab = await page.context().newPage()
    await tab.goto(page.url())
    await signIn(tab, token)
    await expect.poll(() => tab.locator('tbody th').first().textContent()).toBe('1000')
  })

  test('a page that its texts cut short has a next one', async () => {
    const name = 'x'.repeat(400_000)
    await store.fill(Array.from({ length: 30 }, (_, n) => ({ id: BigInt(n), name })))
    await using opened = await open()
    const { page } = opened
    let seen = 0
    for (;;) {
      await shows(rowsOf(page), /^\d+ rows, (more follow|no more)$/)
      const rows = await page.locator('tbody tr').count()
      seen += rows
      if ((await rowsOf(page).textContent()) === `${rows} rows, no more`) break
      expect(rows).toBeLessThan(30)
      await page.getByRole('button', { name: 'Next' }).click()
      const first = async () => (await page.locator('tbody th').allTextContents())[0] ?? 'none'
      await expect.poll(first).toBe(seen < 30 ? `${seen}` : 'none')
    }
    expect(seen).toBe(30)
  })

  test('a search shows what it has found so far, stops, and goes on from there', async () => {
    await store.fill(
      Array.from({ length: 20_000 }, (_, n) => ({
        id: BigInt(n),
        name: n === 100 || n === 19_000 ? 'a NEEDLE' : 'hay',
      })),
    )
    await using opened = await open()
    const { page, requested } = opened
    const ids = () => page.locator('tbody th').allTextContents()
    await shows(page.locator('#total'), '10,000 or more in all')
    const release = store.holdListsAfter(2)
    await page.getByLabel('name contains').fill('needle')
    await page.getByRole('button', { name: 'Show' }).click()
    await shows(page.locator('#progress'), 'Looked up to id 7999, 1 found')
    expect(await ids()).toEqual(['100'])
    expect(await page.locator('#total').textContent()).toBe('')
    await page.getByRole('button', { name: 'Stop' }).click()
    await shows(rowsOf(page), '1 rows, more follow')
    expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0)
    release()
    const before = requested.length
    await page.getByRole('button', { name: 'Next' }).click()
    await shows(rowsOf(page), '1 rows, no more')
    expect(await ids()).toEqual(['19000'])
    expect(new URL(page.url()).hash).toBe('#plants?name_contains=needle&after=7999')
    const searches = requested.slice(before).map(url => new URL(url).searchParams)
    expect(searches.map(each => each.get('after'))).toEqual(['7999', '11999', '15999'])
    expect(searches.filter(each => each.has('count'))).toEqual([])
  })

  test('a second entity needs only its description', async () => {
    await store.fill([ficus])
    await using opened = await open({ as: '' })
    const { page } = opened
    const sent: (string | null)[] = []
    await page.route('**/openapi.json', async route => {
      const text = await (await route.fetch()).text()
      const { paths, ...others } = JSON.parse(text)
      // Without PUT and DELETE, and with an integer of its own.
      const integer = { type: 'integer', minimum: 0, maximum: 500 }
      const properties = { id: { $ref: '#/components/schemas/PlantId' }, height_cm: integer }
      const schema = { type: 'array', items: { type: 'object', properties, required: ['id'] } }
      const get = { tags: ['gardens'], responses: { 200: { content: { 'application/json': { schema } } } } }
      const post = { tags: ['gardens'], responses: {} }
      await route.fulfill({ json: { ...others, paths: { '/gardens': { get, post }, ...paths } } })
    })
    await page.route('**/gardens*', async route => {
      if (route.request().method() === 'POST') sent.push(route.request().postData())
      await route.fulfill({
        contentType: 'application/json',
        body: sent.length > 0 ? '{"id":-7}' : '[{"id":9007199254740993,"height_cm":3,"new":1}]',
      })
    })
    await page.reload()
    await signIn(page, token)
    await page.getByRole('link', { name: 'plants', exact: true }).click()
    await expect.poll(() => page.locator('caption').textContent()).toBe('plants')
    await page.getByRole('link', { name: 'gardens' }).click()
    await expect.poll(() => page.locator('tbody tr').allTextContents()).toEqual(['90071992547409933'])
    expect(await page.getByLabel('From id').count()).toBe(0)
    await page.getByRole('button', { name: 'New' }).click()
    await dialog(page).getByLabel('id', { exact: true }).fill('-7')
    await dialog(page).getByLabel('height_cm').fill('501')
    await dialog(page).getByRole('button', { name: 'Save' }).click()
    await shows(dialog(page).locator('.problem').nth(1), 'must be an integer from 0 to 500')
    await dialog(page).getByLabel('height_cm').fill('500')
    await dialog(page).getByRole('button', { name: 'Save' }).click()
    await expect.poll(() => sent).toEqual(['{"id":-7,"height_cm":500}'])
  })

  test('a token that may only read loses the buttons once the store refuses', async () => {
    await store.fill([ficus])
    await using opened = await open({ as: store.token(scopesByChoice.read) })
    const { page } = opened
    await page.getByRole('link', { name: '7', exact: true }).click()
    await dialog(page).getByRole('button', { name: 'Save' }).click()
    await shows(dialog(page).getByRole('alert'), /\(40301\)/)
    for (const name of ['Save', 'Delete'])
      expect(await dialog(page).getByRole('button', { name }).count()).toBe(0)
    await dialog(page).getByRole('button', { name: 'Close' }).click()
    await shows(rowsOf(page), '1 rows, no more')
    expect(await page.getByRole('button', { name: 'New' }).count()).toBe(0)
    expect(await stored(7n)).toEqual(ficus)
  })

  test('a token that expires while a form is open is asked for over it', async () => {
    await store.fill([ficus])
    const short = store.token()
    await using opened = await open({ as: short, place: '#plants/7' })
    const { page } = opened
    await dialog(page).getByLabel('name', { exact: true }).fill('mine')
    store.expire(short)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByLabel('Access token').waitFor()
    expect(await dialog(page).getByLabel('name', { exact: true }).inputValue()).toBe('mine')
    await signIn(page, token)
    await shows(page.getByRole('status'), /Plant 7 is saved\./)
    expect(await stored(7n)).toEqual({ ...ficus, name: 'mine' })
  })

  test('markup is text everywhere', async () => {
    const markup = '<img src=x onerror=alert(1)>'
    await store.fill([{ id: 7n, name: markup, tag: markup }])
    await using opened = await open()
    const { page, requested } = opened
    await shows(rowsOf(page), '1 rows, no more')
    expect(await page.locator('tbody td').allTextContents()).toEqual([markup, markup])
    await page.getByLabel('tag', { exact: true }).first().fill(markup)
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByRole('link', { name: '7', exact: true }).click()
    expect(await dialog(page).getByLabel('name', { exact: true }).inputValue()).toBe(markup)
    await dialog(page).getByLabel('name', { exact: true }).fill(`${markup}2`)
    await store.plants.replace({ id: 7n, name: `${markup}3` } as unknown as Plant)
    await dialog(page).getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Keep what is there' }).waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expect(requested.filter(url => url.endsWith('/x'))).toEqual([])
  })

  test.each([
    ['light', 1200],
    ['dark', 1200],
    ['light', 375],
    ['dark', 375],
  ] as const)('axe finds nothing, in %s, at %i pixels', async (colorScheme, width) => {
    await store.fill([ficus, { id: 8n, name: '' }])
    await using opened = await open({ as: '', colorScheme, viewport: { width, height: 740 } })
    const { page } = opened
    await page.getByLabel('Access token').waitFor()
    const found = async () => {
      await page.evaluate(axe)
      return page.evaluate(async () => {
        const { violations } = await (globalThis as unknown as { axe: { run(): Promise<Found> } }).axe.run()
        return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html)}`)
      })
    }
    expect(await found()).toEqual([])
    await signIn(page, token)
    await shows(rowsOf(page), '2 rows, no more')
    expect(await found()).toEqual([])
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
    await page.getByRole('link', { name: '7', exact: true }).click()
    await dialog(page).getByLabel('name', { exact: true }).fill('mine')
    expect(await found()).toEqual([])
    await store.plants.replace({ id: 7n, name: 'theirs' } as unknown as Plant)
    await dialog(page).getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Keep what is there' }).waitFor()
    expect(await found()).toEqual([])
  })

  test('the keyboard is enough, from the token to a saved plant', async () => {
    await store.fill([ficus])
    await using opened = await open({ as: '' })
    const { page } = opened
    const { keyboard } = page
    await page.getByLabel('Access token').waitFor()
    await keyboard.type(token)
    await keyboard.press('Enter')
    await shows(rowsOf(page), '1 rows, no more')
    const tabTo = async (text: string) => {
      const focused = () => page.evaluate(() => document.activeElement?.textContent)
      for (let n = 0; n < 20 && (await focused()) !== text; n++) await keyboard.press('Tab')
      expect(await focused()).toBe(text)
    }
    await tabTo('New')
    await keyboard.press('Enter')
    await dialog(page).waitFor()
    await keyboard.type('-5')
    await keyboard.press('Tab')
    await keyboard.type('Aloe')
    await tabTo('Save')
    await keyboard.press('Enter')
    await shows(page.getByRole('status'), /Plant -5 is saved\./)
    expect(await stored(-5n)).toEqual({ id: -5n, name: 'Aloe' })
    await tabTo('7')
    await keyboard.press('Enter')
    await dialog(page).waitFor()
    await keyboard.press('Escape')
    await shows(rowsOf(page), '2 rows, no more')
    await tabTo('7')
    await keyboard.press('Enter')
    await dialog(page).getByLabel('name').fill('Ficus lyrata')
    // An edited form stays.
    await keyboard.press('Escape')
    expect(await dialog(page).getByLabel('name').inputValue()).toBe('Ficus lyrata')
    await dialog(page).getByRole('button', { name: 'Save' }).click()
    await shows(page.getByRole('status'), /Plant 7 is saved\./)
  })
})

type Opening = Parameters<Browser['newContext']>[0] & {
  readonly place?: string
  /** A token, or none. */
  readonly as?: string
  readonly url?: string
}

interface Found {
  readonly violations: readonly { id: string; nodes: readonly { html: string }[] }[]
}

const dialog = (page: Page) => page.locator('#record')
const rowsOf = (page: Page) => page.locator('#rows')

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Access token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

async function shows(locator: ReturnType<typeof rowsOf>, text: string | RegExp): Promise<void> {
  const shown = expect.poll(() => locator.textContent())
  await (typeof text === 'string' && text !== ''
    ? shown.toContain(text)
    : shown.toMatch(text === '' ? /^$/ : text))
}
