import { expect } from 'vitest'
import { type Opened, type PlantParts, shows, signIn, test } from './page.ts'

/** Plants with ids from 0. Every tenth has a tag. */
const many = (count: number) =>
  Array.from(
    { length: count },
    (_, n): PlantParts => [BigInt(n), `n${n}`, n % 10 === 0 ? 't&=#' : undefined],
  )

/** Some are found by a search, far from each other. */
const hay = many(20_000).map(
  ([id, name]): PlantParts =>
    id === 100n || id === 19_000n ? [id, 'a NEEDLE'] : [id, name],
)

/** Waits until the table begins and ends with these ids. */
async function showsIds({ ids }: Opened, first: number, last: number): Promise<void> {
  const ends = async () => {
    const all = await ids()
    return [all.at(0), all.at(-1)]
  }
  await expect.poll(ends).toEqual([`${first}`, `${last}`])
}

test('a list is read page by page, and keeps its place in the URL', {
  plants: many(300),
}, async opened => {
  const { page, rows, press, button, hash, filter, total, reload, refusal } = opened
  await showsIds(opened, 0, 99)
  await shows(rows, '100 rows, more follow')
  await shows(total, '300 in all')
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
  await reload()
  await showsIds(opened, 100, 199)
  expect(await filter('From id').inputValue()).toBe('100')
  await press('Previous')
  await showsIds(opened, 0, 99)
  await page.goBack()
  await showsIds(opened, 100, 199)
  await press('First')
  await showsIds(opened, 0, 99)

  await filter('From id').fill(' 250 ')
  await page.keyboard.press('Enter')
  await showsIds(opened, 250, 299)
  await shows(rows, '50 rows, no more')
  await filter('From id').fill('x')
  await press('Show')
  await shows(refusal, 'From id takes digits and a minus sign only.')
})

test('a list is filtered, also by a bookmark in another tab', {
  plants: many(2_500),
}, async opened => {
  const { page, press, filter, total, token } = opened
  await filter('tag').fill('t&=#')
  await press('Show')
  await showsIds(opened, 0, 990)
  await press('Next')
  await showsIds(opened, 1000, 1990)
  await shows(total, '250 in all')

  const tab = await page.context().newPage()
  await tab.goto(page.url())
  await signIn(tab, token)
  await shows(tab.locator('#table tbody th').first(), '1000')
})

test('a search shows what it has found, stops and goes on', {
  plants: hay,
}, async ({ page, requested, rows, ids, press, hash, filter, total, store }) => {
  await shows(total, '10,000 or more in all')
  // One list of the search looks at 4,000 plants, so two end at 7999.
  const release = store.holdListsAfter(2)

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

/** Keeps what a screen reader says of the status line. */
function noteSpeech(): void {
  const spoken: string[] = []
  Object.assign(window, { spoken })
  const status = document.querySelector('[role="status"]') ?? document.body
  const options = { childList: true, subtree: true, characterData: true }
  new MutationObserver(() => spoken.push(`${status.textContent}`.trim())).observe(
    status,
    options,
  )
}
