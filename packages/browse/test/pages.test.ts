import { statSync } from 'node:fs'
import { expect } from 'vitest'
import {
  button,
  filter,
  goTo,
  hash,
  ids,
  many,
  type PlantParts,
  page,
  press,
  refusal,
  requested,
  rows,
  several,
  shows,
  store,
  test,
  total,
} from './page.ts'

/** Some are found by a search, far from each other. */
const hay = many(20_000).map(
  ([id, name]): PlantParts =>
    id === 100n || id === 19_000n ? [id, 'a NEEDLE'] : [id, name],
)

/** Waits until the table begins and ends with these ids. */
async function showsIds(first: number, last: number): Promise<void> {
  const ends = async () => {
    const all = await ids()
    return [all.at(0), all.at(-1)]
  }
  await expect.poll(ends).toEqual([`${first}`, `${last}`])
}

test('a list is read page by page, and keeps its place in the URL', {
  plants: many(300),
}, async () => {
  await showsIds(0, 99)
  await shows(rows, '100 rows, more follow')
  await shows(total, '300 in all')
  await shows(page.locator('#range'), '1–100 of 300')

  await press('Next')
  await showsIds(100, 199)
  await press('Next')
  await showsIds(200, 299)
  await shows(rows, '100 rows, no more')
  expect(await button('Next').isDisabled()).toBe(true)
  expect(hash()).toBe('#plants?after=199')

  await page.goBack()
  await showsIds(100, 199)
  expect(await filter('From id').inputValue()).toBe('100')
  await press('First')
  await showsIds(0, 99)

  await filter('From id').fill(' 250 ')
  await page.keyboard.press('Enter')
  await showsIds(250, 299)
  await shows(rows, '50 rows, no more')
  await filter('From id').fill('x')
  await press('Show')
  await shows(refusal, 'From id takes digits and a minus sign only.')
})

test('the page is small, and its forms come after the first rows', async () => {
  await expect.poll(() => requested.at(-1)).toContain('/plants/batch')
  const files = requested.map(url => new URL(url).pathname.replace(/^\/browse\//, ''))
  expect(files.indexOf('forms.js')).toBeGreaterThan(files.indexOf('/plants'))

  const sizes = ['browse.html', 'page.css', 'chunk.js', 'forms.js'].map(
    file => statSync(new URL(`../dist/${file}.gz`, import.meta.url)).size,
  )
  const size = sizes.reduce((sum, each) => sum + each)
  expect(size).toBeLessThan(17_000)
})

test('a search shows what it has found, stops and goes on', {
  plants: hay,
}, async () => {
  await shows(total, '10,000 or more in all')
  // One list of the search looks at 4,000 plants, so two end at 7999.
  const release = store.holdListsAfter(2)

  await page.evaluate(noteSpeech)
  await filter('name contains').fill('needle')
  await press('Show')
  await shows(total, 'Looked up to id 7999, 1 found')
  expect(requested.at(-1)).toContain('limit=99')
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

test('a list says that it loads, and ends the reading of the one before', {
  plants: several,
}, async () => {
  await page.route(/after=/, () => {})
  const ended: string[] = []
  page.on('requestfailed', request => ended.push(request.url()))

  await press('Next')
  await shows(rows, 'Loading …')
  await goTo('#plants')

  // Half of the time after which the client itself would end it.
  await expect.poll(() => `${ended}`, { timeout: 5_000 }).toContain('after=')
})
