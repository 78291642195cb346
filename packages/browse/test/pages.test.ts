import { plant } from '@plant-store/domain/testing'
import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { type Opened, shows, signIn, usePage } from './page.ts'

describe('a list', needs('chromium', hasBrowser), () => {
  const { open, ...fixture } = usePage()

  /** Returns plants with ids from 0. Every tenth has a tag. */
  function makePlants(count: number) {
    return Array.from({ length: count }, (_, n) => {
      const tag = n % 10 === 0 ? 't&=#' : undefined
      return plant(BigInt(n), `n${n}`, tag)
    })
  }

  /** Waits until the table begins and ends with these ids. */
  async function showsIds({ ids }: Opened, first: number, last: number): Promise<void> {
    const ends = async () => {
      const all = await ids()
      return [all.at(0), all.at(-1)]
    }
    await expect.poll(ends).toEqual([`${first}`, `${last}`])
  }

  test('is read page by page, and keeps its place in the URL', async () => {
    await fixture.store().fill(makePlants(300))
    await using opened = await open()
    const { page, rows, press, button, hash, filter } = opened
    await showsIds(opened, 0, 99)
    await shows(rows, '100 rows, more follow')
    await shows(page.locator('#total'), '300 in all')
    expect(await button('Previous').isDisabled()).toBe(true)

    await press('Next')
    await showsIds(opened, 100, 199)
    await press('Next')
    await showsIds(opened, 200, 299)
    await shows(rows, '100 rows, no more')
    expect(await button('Next').isDisabled()).toBe(true)
    expect(hash()).toBe('#plants?after=199')

    await press('Previous')
    await showsIds(opened, 100, 199)
    await opened.reload()
    await showsIds(opened, 100, 199)
    expect(await filter('From id').inputValue()).toBe('100')
    await press('Previous')
    await showsIds(opened, 0, 99)
    await page.goBack()
    await showsIds(opened, 100, 199)
    await press('First')
    await showsIds(opened, 0, 99)
  })

  test('begins at the id in "From id", and refuses what is no id', async () => {
    await fixture.store().fill(makePlants(300))
    await using opened = await open()
    const { page, rows, refusal, press, filter } = opened
    await filter('From id').fill('250')
    await page.keyboard.press('Enter')
    await showsIds(opened, 250, 299)
    await shows(rows, '50 rows, no more')

    await filter('From id').fill('x')
    await press('Show')
    await shows(refusal, 'From id takes digits and a minus sign only.')
  })

  test('is filtered, also by a bookmark in another tab', async () => {
    await fixture.store().fill(makePlants(2_500))
    await using opened = await open()
    const { page, press, filter } = opened
    await filter('tag').fill('t&=#')
    await press('Show')
    await showsIds(opened, 0, 990)
    await press('Next')
    await showsIds(opened, 1000, 1990)
    await shows(page.locator('#total'), '250 in all')

    const tab = await page.context().newPage()
    await tab.goto(page.url())
    await signIn(tab, fixture.token())
    await shows(tab.locator('#table tbody th').first(), '1000')
  })

  test('of a search has no total, shows what it has found, stops and goes on', async () => {
    const names = Array.from({ length: 20_000 }, () => 'hay')
    names[100] = 'a NEEDLE'
    names[19_000] = 'a NEEDLE'
    const plants = names.map((name, n) => plant(BigInt(n), name))
    await fixture.store().fill(plants)
    await using opened = await open()
    const { page, requested, rows, ids, press, hash, filter } = opened
    const total = page.locator('#total')
    await shows(total, '10,000 or more in all')
    // One list of the search looks at 4,000 plants, so two end at 7999.
    const release = fixture.store().holdListsAfter(2)

    await page.evaluate(noteSpeech)
    await filter('name contains').fill('needle')
    await press('Show')
    await shows(total, 'Looked up to id 7999, 1 found')
    expect(await rows.textContent()).toBe('Searching …')
    expect(await ids()).toEqual(['100'])
    await press('Stop')
    await shows(rows, '1 row, more follow')
    expect(await page.evaluate('spoken')).toEqual(['Searching …', '1 row, more follow'])
    release()

    const requestsBefore = requested.length
    await press('Next')
    await shows(rows, '1 row, no more')
    expect(await ids()).toEqual(['19000'])
    expect(hash()).toBe('#plants?name_contains=needle&after=7999')
    const queries = requested
      .slice(requestsBefore)
      .map(url => new URL(url).searchParams)
      .map(query => [query.get('after'), query.has('count')])
    expect(queries).toEqual([
      ['7999', false],
      ['11999', false],
      ['15999', false],
    ])
  })
})

/** Keeps what a screen reader says of the status line. */
function noteSpeech(): void {
  const spoken: string[] = []
  Object.assign(window, { spoken })
  const status = document.querySelector('[role="status"]') ?? document.body
  new MutationObserver(() => spoken.push(`${status.textContent}`.trim())).observe(
    status,
    {
      childList: true,
      subtree: true,
      characterData: true,
    },
  )
}
