import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { scopesByChoice } from '@plant-store/access'
import { type Plant, parsePlantId } from '@plant-store/domain'
import { plant } from '@plant-store/domain/testing'
import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { shows, signIn, usePage } from './page.ts'
import { type Fate, startProxy } from './store.ts'

const axe = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
)
const min = -9223372036854775808n
const max = 9223372036854775807n
const ficus = plant(7n, 'Ficus', 'tree')

describe('the page', needs('chromium', hasBrowser), () => {
  const { open, stored, ...fixture } = usePage()

  test('signs in with a token that the store accepts, in this tab until it signs out', async () => {
    await fixture.store().fill([ficus])
    await using opened = await open({ as: '' })
    const { page, rows, press } = opened
    const field = page.getByLabel('Access token')
    await expect.poll(() => field.getAttribute('type')).toBe('password')
    await signIn(page, 'plantstore_wrong')
    await shows(page.locator('.sign-in').getByRole('alert'), /\(40102\)/)
    await signIn(page, fixture.token())
    await shows(rows, '1 row, no more')
    const kept = () => [
      location.hash,
      localStorage.length,
      document.cookie,
      { ...sessionStorage },
    ]
    expect(await page.evaluate(kept)).toEqual([
      '#plants',
      0,
      '',
      { '/ token': fixture.token() },
    ])

    await page.reload()
    await shows(rows, '1 row, no more')
    const tab = await page.context().newPage()
    await tab.goto(`${fixture.store().url}/browse`)
    await tab.getByLabel('Access token').waitFor()
    expect(await tab.locator('tbody tr').count()).toBe(0)

    await press('Sign out')
    await field.waitFor()
    expect(await page.locator('tbody tr').count()).toBe(0)
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  })

  test('integers are exact when they are typed, saved, listed and in the URL', async () => {
    await fixture.store().fill([])
    await using opened = await open()
    const { page, form, member, status, rows, ids, press } = opened
    const all = [min, -1n, 0n, 2n ** 53n + 1n, max]
    await press('New')
    for (const wrong of ['', '-', '-0', '07', `${max + 1n}`, `${min - 1n}`]) {
      await member('id').fill(wrong)
      await press('Save')
      const problem = `must be an integer from ${min} to ${max}`
      await shows(form.locator('.problem').first(), problem)
    }
    await press('Close')
    await press('Discard what I typed')
    for (const id of all.toReversed()) {
      await press('New')
      await member('id').fill(`${id}`)
      await member('name').fill(`plant ${id}`)
      await press('Save')
      await shows(status, `Plant ${id} is saved.`)
    }
    await shows(rows, '5 rows, no more')
    expect(await ids()).toEqual(all.map(id => `${id}`))
    expect((await fixture.store().plants.list({ limit: 9 })).plants).toEqual(
      all.map(id => ({ id, name: `plant ${id}` })),
    )
    for (const id of all) {
      await page.goto(`${fixture.store().url}/browse#plants/${id}`)
      await expect.poll(() => member('name').inputValue()).toBe(`plant ${id}`)
      expect(await form.getByRole('heading').textContent()).toBe(`Plant ${id}`)
      await press('Close')
      await expect.poll(() => new URL(page.url()).hash).toBe('#plants')
    }
  })

  test('a text that nobody edits keeps its bytes', async () => {
    const name = `a\r\nb\rc\td\u202e\u2066e🪴${'x'.repeat(100_000)}`
    await fixture.store().fill([
      { id: 7n, name, tag: 'tree' },
      { id: 8n, name: 'a\r\nb' },
      { id: 9n, name: '', tag: '' },
    ])
    await using opened = await open()
    const { page, form, member, status, rows, cells, press } = opened
    await shows(rows, '3 rows, no more')
    expect(await cells()).toEqual([
      `a ↵ b ↵ c ⇥ dU+202EU+2066e🪴${'x'.repeat(188)}… 99,812 more`,
      ...['tree', 'a ↵ b', '–', '(empty)', '(empty)'],
    ])
    const edit = async (id: string, change: () => Promise<void>) => {
      await page.getByRole('link', { name: id, exact: true }).click()
      await form.waitFor()
      await change()
      await press('Save')
      await shows(status, `Plant ${id} is saved.`)
    }
    await edit('7', () => member('tag').fill('climber'))
    expect(await stored(7n)).toEqual({ id: 7n, name, tag: 'climber' })
    await edit('8', async () => {
      await member('name').fill('a\nb\nc')
      await shows(form.locator('.problem').first(), /saved with LF/)
      await member('name').fill('a\nb')
      await shows(form.locator('.problem').first(), /^$/)
      await member('tag').fill('')
      await member('has tag').check()
    })
    expect(await stored(8n)).toEqual({ id: 8n, name: 'a\r\nb', tag: '' })
    await edit('9', () => member('has tag').uncheck())
    expect(await stored(9n)).toEqual({ id: 9n, name: '' })
  })

  test('a change by another is not overwritten unless it was shown', async () => {
    await fixture.store().fill([ficus])
    await using opened = await open()
    const { page, member, status, rows, press, follow } = opened
    const begin = async () => {
      await fixture.store().plants.replace(ficus)
      await follow('7')
      await member('name').fill('mine')
    }
    const others = (name: string) => fixture.store().plants.replace(plant(7n, name))
    const shown = () =>
      page.locator('.states tbody tr').first().locator('td').allTextContents()

    await begin()
    await others('theirs')
    await press('Save')
    await page
      .getByRole('heading', {
        name: 'Plant 7 was changed since you opened it. Nothing was saved.',
      })
      .waitFor()
    expect(await shown()).toEqual(['Ficus', 'theirs *', 'mine *'])
    await press('Go on editing')
    expect(await member('name').inputValue()).toBe('mine')
    await press('Save')
    await press('Keep what is there')
    await shows(rows, '1 row, no more')
    expect(await stored(7n)).toEqual({ id: 7n, name: 'theirs' })

    await begin()
    await others('theirs')
    await press('Save')
    await page.getByRole('button', { name: 'Save mine over it' }).waitFor()
    await others('theirs again')
    await press('Save mine over it')
    await expect.poll(shown).toEqual(['Ficus', 'theirs·again *', 'mine *'])
    expect(await stored(7n)).toEqual({ id: 7n, name: 'theirs again' })
    await press('Save mine over it')
    await shows(status, /Plant 7 is saved\./)
    expect(await stored(7n)).toEqual({ ...ficus, name: 'mine' })

    await begin()
    await others('theirs')
    await press('Delete')
    await press('Delete 7')
    await page
      .getByRole('heading', { name: /was changed .* Nothing was deleted/ })
      .waitFor()
    await press('Delete 7')
    await shows(status, /Plant 7 is deleted\./)
    expect(await stored(7n)).toBeUndefined()

    await fixture.store().fill([ficus])
    await page.reload()
    await begin()
    await fixture.store().plants.remove(parsePlantId(7n))
    await press('Save')
    await page
      .getByRole('heading', { name: /Plant 7 was removed .* Nothing was saved/ })
      .waitFor()
    await press('Save mine over it')
    await shows(status, /Plant 7 is saved\./)

    await press('New')
    await member('id').fill('8')
    await fixture.store().plants.replace(plant(8n, 'Ficus'))
    await press('Save')
    await follow('id 8 exists')
    await page.getByRole('heading', { name: 'Plant 8' }).waitFor()
    expect(await member('name').inputValue()).toBe('Ficus')
  })

  test('a save whose answer is lost says in the end what is true', async () => {
    using proxy = await startProxy(fixture.store().url)
    await using opened = await open({ url: proxy.url })
    const { page, form, member, status, press } = opened
    const lose = (fate: Fate, times: number) => {
      let left = times
      proxy.fate = method => (method === 'PUT' && left-- > 0 ? fate : 'passed')
    }
    const edit = async () => {
      await fixture.store().fill([ficus])
      await page.goto(`${proxy.url}/browse#plants/7`)
      await member('name').fill('mine')
    }
    for (const [fate, times] of [
      ['made, but unanswered', 1],
      ['lost', 1],
      ['made, but unanswered', 9],
    ] as const) {
      await edit()
      lose(fate, times)
      await press('Save')
      await shows(status, 'Plant 7 is saved.')
      expect((await stored(7n))?.name).toBe('mine')
    }
    await edit()
    lose('lost', 9)
    await press('Save')
    await shows(form.getByRole('alert'), /^It was not saved/)
    expect(await stored(7n)).toEqual(ficus)
    proxy.fate = () => 'lost'
    await press('Save')
    await shows(
      form.getByRole('alert'),
      /^It is unknown whether it was saved: the store did not/,
    )
    expect(await member('name').inputValue()).toBe('mine')
    proxy.fate = () => 'passed'
    await press('Save')
    await shows(status, /Plant 7 is saved\./)
  })

  test('goes through 2,500 plants by pages, ids and filters, and keeps its place in the URL', async () => {
    await fixture
      .store()
      .fill(
        Array.from({ length: 2_500 }, (_, n) =>
          plant(BigInt(n), `n${n}`, n % 10 === 0 ? 't&=#' : undefined),
        ),
      )
    await using opened = await open()
    const { page, rows, ids, press, follow } = opened
    const isAt = async (first: number, last: number, shown = '100 rows, more follow') => {
      await expect.poll(async () => (await ids())[0]).toBe(`${first}`)
      expect((await ids()).at(-1)).toBe(`${last}`)
      await shows(rows, shown)
    }
    await isAt(0, 99)
    await shows(page.locator('#total'), '2,500 in all')
    expect(await page.getByRole('button', { name: 'Previous' }).isDisabled()).toBe(true)
    await press('Next')
    await isAt(100, 199)
    await press('Next')
    await isAt(200, 299)
    expect(new URL(page.url()).hash).toBe('#plants?after=199')
    await press('Previous')
    await isAt(100, 199)
    await page.reload()
    await isAt(100, 199)
    expect(await page.getByLabel('From id').inputValue()).toBe('100')
    await follow('150')
    await press('Close')
    await press('Previous')
    await isAt(0, 99)
    await page.goBack()
    await isAt(100, 199)
    await press('First')
    await isAt(0, 99)

    await page.getByLabel('From id').fill('2450')
    await page.keyboard.press('Enter')
    await isAt(2450, 2499, '50 rows, no more')
    expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true)
    await page.getByLabel('From id').fill('x')
    await press('Show')
    await shows(
      page.getByRole('alert').first(),
      'From id takes digits and a minus sign only.',
    )
    await page.getByLabel('From id').fill('')
    await page.getByLabel('tag', { exact: true }).first().fill('t&=#')
    await press('Show')
    await isAt(0, 990)
    await press('Next')
    await isAt(1000, 1990)
    await shows(page.locator('#total'), '250 in all')
    const tab = await page.context().newPage()
    await tab.goto(page.url())
    await signIn(tab, fixture.token())
    await expect.poll(() => tab.locator('tbody th').first().textContent()).toBe('1000')
  })

  test('a search shows what it has found so far, stops, and goes on from there', async () => {
    await fixture
      .store()
      .fill(
        Array.from({ length: 20_000 }, (_, n) =>
          plant(BigInt(n), n === 100 || n === 19_000 ? 'a NEEDLE' : 'hay'),
        ),
      )
    await using opened = await open()
    const { page, requested, rows, ids, press } = opened
    await shows(page.locator('#total'), '10,000 or more in all')
    const release = fixture.store().holdListsAfter(2)
    await page.getByLabel('name contains').fill('needle')
    await press('Show')
    await shows(rows, 'Searching … Looked up to id 7999, 1 found')
    expect(await ids()).toEqual(['100'])
    expect(await page.locator('#total').textContent()).toBe('')
    await press('Stop')
    await shows(rows, '1 row, more follow')
    expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0)
    release()
    const before = requested.length
    await press('Next')
    await shows(rows, '1 row, no more')
    expect(await ids()).toEqual(['19000'])
    expect(new URL(page.url()).hash).toBe('#plants?name_contains=needle&after=7999')
    const searches = requested.slice(before).map(url => new URL(url).searchParams)
    expect(searches.map(each => each.get('after'))).toEqual(['7999', '11999', '15999'])
    expect(searches.filter(each => each.has('count'))).toEqual([])
  })

  test('a second entity needs only its description', async () => {
    await fixture.store().fill([ficus])
    await using opened = await open({ as: '' })
    const { page, form, member, press, follow } = opened
    const sent: (string | null)[] = []
    await page.route('**/openapi.json', async route => {
      const text = await (await route.fetch()).text()
      const { paths, ...others } = JSON.parse(text)
      // Without PUT and DELETE, and with an integer of its own.
      const integer = { type: 'integer', minimum: 0, maximum: 500 }
      const properties = {
        id: { $ref: '#/components/schemas/PlantId' },
        height_cm: integer,
      }
      const schema = {
        type: 'array',
        items: { type: 'object', properties, required: ['id'] },
      }
      const get = {
        tags: ['gardens'],
        responses: { 200: { content: { 'application/json': { schema } } } },
      }
      const post = { tags: ['gardens'], responses: {} }
      await route.fulfill({
        json: { ...others, paths: { '/gardens': { get, post }, ...paths } },
      })
    })
    await page.route('**/gardens*', async route => {
      if (route.request().method() === 'POST') {
        sent.push(route.request().postData())
      }
      await route.fulfill({
        contentType: 'application/json',
        body:
          sent.length > 0
            ? '{"id":-7}'
            : '[{"id":9007199254740993,"height_cm":3,"new":1}]',
      })
    })
    await page.reload()
    await signIn(page, fixture.token())
    await follow('plants')
    await expect.poll(() => page.locator('caption').textContent()).toBe('plants')
    await follow('gardens')
    await expect
      .poll(() => page.locator('tbody tr').allTextContents())
      .toEqual(['90071992547409933'])
    expect(await page.getByLabel('From id').count()).toBe(0)
    await press('New')
    await member('id').fill('-7')
    await member('height_cm').fill('501')
    await press('Save')
    await shows(form.locator('.problem').nth(1), 'must be an integer from 0 to 500')
    await member('height_cm').fill('500')
    await press('Save')
    await expect.poll(() => sent).toEqual(['{"id":-7,"height_cm":500}'])
  })

  test('a token that may only read loses the buttons once the store refuses', async () => {
    await fixture.store().fill([ficus])
    await using opened = await open({ as: fixture.store().token(scopesByChoice.read) })
    const { page, form, rows, press, follow } = opened
    await follow('7')
    await press('Save')
    await shows(form.getByRole('alert'), /\(40301\)/)
    for (const name of ['Save', 'Delete']) {
      expect(await form.getByRole('button', { name }).count()).toBe(0)
    }
    await press('Close')
    await shows(rows, '1 row, no more')
    await expect.poll(() => page.getByRole('button', { name: 'New' }).count()).toBe(0)
    expect(await stored(7n)).toEqual(ficus)
  })

  test('a token that expires while a form is open is asked for over it', async () => {
    await fixture.store().fill([ficus])
    const short = fixture.store().token()
    await using opened = await open({ as: short, place: '#plants/7' })
    const { page, member, status, press } = opened
    await member('name').fill('mine')
    fixture.store().expire(short)
    await press('Save')
    await page.getByLabel('Access token').waitFor()
    expect(await member('name').inputValue()).toBe('mine')
    await signIn(page, fixture.token())
    await shows(status, /Plant 7 is saved\./)
    expect(await stored(7n)).toEqual({ ...ficus, name: 'mine' })
  })

  test('markup is text everywhere', async () => {
    const markup = '<img src=x onerror=alert(1)>'
    await fixture.store().fill([{ id: 7n, name: markup, tag: markup }])
    await using opened = await open()
    const { page, requested, member, rows, cells, press, follow } = opened
    await shows(rows, '1 row, no more')
    expect(await cells()).toEqual([markup, markup])
    await page.getByLabel('tag', { exact: true }).first().fill(markup)
    await press('Show')
    await follow('7')
    expect(await member('name').inputValue()).toBe(markup)
    await member('name').fill(`${markup}2`)
    await fixture
      .store()
      .plants.replace({ id: 7n, name: `${markup}3` } as unknown as Plant)
    await press('Save')
    await page.getByRole('button', { name: 'Keep what is there' }).waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expect(requested.filter(url => url.endsWith('/x'))).toEqual([])
  })

  test('axe finds nothing, light and dark, wide and on a phone', async () => {
    await fixture.store().fill([ficus, { id: 8n, name: '' }])
    await using opened = await open({ as: '' })
    const { page, member, rows, press, follow } = opened
    await page.getByLabel('Access token').waitFor()
    await page.evaluate(axe)
    const findsNothing = async () => {
      for (const width of [1200, 375]) {
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.setViewportSize({ width, height: 740 })
          await page.emulateMedia({ colorScheme })
          const found = await page.evaluate(async () => {
            const { violations } = await (globalThis as unknown as Axe).axe.run()
            return violations.map(
              ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html)}`,
            )
          })
          expect(found).toEqual([])
          expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(
            width,
          )
        }
      }
    }
    await findsNothing()
    await signIn(page, fixture.token())
    await shows(rows, '2 rows, no more')
    await findsNothing()
    await follow('7')
    await member('name').fill('mine')
    await findsNothing()
    await fixture.store().plants.replace(plant(7n, 'theirs'))
    await press('Save')
    await page.getByRole('button', { name: 'Keep what is there' }).waitFor()
    await findsNothing()
  })

  test('the keyboard is enough, from the token to a saved plant', async () => {
    await fixture.store().fill([ficus])
    await using opened = await open({ as: '' })
    const { page, form, member, status, rows, press } = opened
    const { keyboard } = page
    await page.getByLabel('Access token').waitFor()
    await keyboard.type(fixture.token())
    await keyboard.press('Enter')
    await shows(rows, '1 row, no more')
    const tabTo = async (text: string) => {
      const focused = () => page.evaluate(() => document.activeElement?.textContent)
      for (let n = 0; n < 20 && (await focused()) !== text; n++) {
        await keyboard.press('Tab')
      }
      expect(await focused()).toBe(text)
    }
    await tabTo('New')
    await keyboard.press('Enter')
    await form.waitFor()
    await keyboard.type('-5')
    await keyboard.press('Tab')
    await keyboard.type('Aloe')
    await tabTo('Save')
    await keyboard.press('Enter')
    await shows(status, /Plant -5 is saved\./)
    expect(await stored(-5n)).toEqual({ id: -5n, name: 'Aloe' })
    await tabTo('7')
    await keyboard.press('Enter')
    await form.waitFor()
    await keyboard.press('Escape')
    await shows(rows, '2 rows, no more')
    await tabTo('7')
    await keyboard.press('Enter')
    await member('name').fill('Ficus lyrata')
    // An edited form asks.
    await keyboard.press('Escape')
    await press('Go on editing')
    expect(await member('name').inputValue()).toBe('Ficus lyrata')
    await press('Save')
    await shows(status, /Plant 7 is saved\./)
  })
})

interface Axe {
  readonly axe: {
    run(): Promise<{
      violations: readonly { id: string; nodes: readonly { html: string }[] }[]
    }>
  }
}
