import { expect } from 'vitest'
import {
  button,
  filter,
  firstId,
  focused,
  form,
  goTo,
  hash,
  heading,
  ids,
  link,
  member,
  openRow,
  page,
  press,
  refusal,
  reload,
  replace,
  row,
  rows,
  save,
  several,
  shows,
  status,
  store,
  test,
} from './page.ts'

const viewport = { width: 375, height: 667 }
const three = [
  [6n, 'six'],
  [7n, 'Ficus'],
  [8n, 'eight'],
] as const

test('the status line stays in view, and Next begins at the top', {
  plants: several,
}, async () => {
  await openRow('98')
  await member('name').fill('mine')
  await save(98)
  const scrolled = await page.evaluate(() => scrollY)
  const box = await status.boundingBox()
  expect(scrolled, 'the list is scrolled').toBeGreaterThan(1_000)
  expect(box?.y, 'the status line').toBeGreaterThanOrEqual(0)

  await press('Next')
  await shows(rows, '100 rows, more follow')
  await expect.poll(() => page.evaluate(() => scrollY)).toBe(0)
})

test('a list that cannot be read says why, and can be tried again', {
  plants: several,
}, async () => {
  await shows(rows, '100 rows, more follow')
  const answer = { status: 502, body: '<h1>Bad Gateway</h1>' }
  await page.route('**/plants?*', route => route.fulfill(answer))
  await press('Next')
  await shows(refusal, 'The list cannot be read: the answer with status 502')
  expect(await ids(), 'rows of another page').toEqual([])
  await page.unrouteAll()
  await press('Try again')
  await expect.poll(firstId).toBe('100')
  expect(await refusal.textContent()).toBe('')
})

test('a row that proves gone disappears', {
  plants: three,
  place: '#plants?after=1',
}, async () => {
  await shows(rows, '3 rows, no more')
  await store.fill([])
  await openRow('7')
  await shows(refusal, 'There is no plant 7.')
  expect(await ids()).toEqual(['6', '8'])
  expect(await focused()).toBe('8')
  await expect.poll(hash).toBe('#plants?after=1')
})

test('the focus comes back to the row, its neighbour, or New', {
  plants: three,
}, async () => {
  await openRow('7')
  await press('Close')
  await expect.poll(focused).toBe('7')
  await openRow('7')
  await member('name').fill('mine')
  await press('Save')
  await shows(status, 'Plant 7 is saved. 3 rows')
  await expect.poll(focused).toBe('7')
  await openRow('7')
  await press('Delete')
  await press('Delete 7')
  await expect.poll(ids).toEqual(['6', '8'])
  await expect.poll(focused).toBe('8')
  await press('New')
  await press('Close')
  await expect.poll(focused).toBe('New')
})

test('the focus stays with somebody who types in a filter meanwhile', {
  plants: three,
}, async () => {
  await openRow('7')
  await press('Delete')
  const release = store.holdListsAfter(0)
  await press('Delete 7')
  await shows(status, 'Plant 7 is deleted.')
  await filter('tag').focus()
  release()
  await expect.poll(ids).toEqual(['6', '8'])
  await page.keyboard.type('tree')
  expect(await filter('tag').inputValue()).toBe('tree')
})

test('the focus is never below the head that sticks to the top', {
  plants: several,
}, async () => {
  await link('99').focus()
  for (let count = 0; count < 40; count++) {
    await page.keyboard.press('Shift+Tab')
  }
  const edges = () => {
    const box = (selector: string) =>
      document.querySelector(selector)?.getBoundingClientRect()
    const head = box('#table thead th')
    const all = [box('#bar')?.bottom, head?.top, head?.bottom, box(':focus')?.top]
    return all.map(edge => Math.round(edge ?? 0))
  }
  const found = await page.evaluate(edges)
  expect(await focused()).toBe('59')
  expect(found).toEqual(found.toSorted((a, b) => a - b))
})

test('the focus goes from a button that is off to the rows', {
  place: '#plants?after=6',
}, async () => {
  await press('First')
  await expect.poll(focused).toBe('7')
})

test('Previous goes to the page before, not to another list or record', {
  plants: several,
  place: '#plants?after=49',
}, async () => {
  const startsAt = async (id: string) => {
    await expect.poll(firstId).toBe(id)
  }
  await startsAt('50')
  await shows(rows, '100 rows, more follow')
  expect(await button('Previous').isDisabled(), 'on a bookmark').toBe(true)
  await press('Next')
  await startsAt('150')
  for (const id of [160, 161]) {
    await goTo(`#plants/${id}?after=149`)
    await heading(`Plant ${id}`).waitFor()
  }
  await press('Close')
  await reload()
  await startsAt('150')
  await press('Previous')
  await startsAt('50')
  await expect.poll(() => button('Previous').isDisabled()).toBe(true)
  await press('Next')
  await startsAt('150')
  await goTo('#plants?tag=none')
  await shows(rows, '0 rows, no more')
  expect(await button('Previous').isDisabled(), 'in another list').toBe(true)
})

test('on a phone the first row is in the upper half, filters are folded', {
  plants: [
    [7n, 'Ficus', 'tree'],
    [8n, 'eight'],
  ],
  viewport,
}, async () => {
  const tag = filter('tag')
  const box = await row('7').boundingBox()
  expect(box?.y).toBeLessThan(viewport.height / 2 - 30)
  expect(await tag.isVisible()).toBe(false)
  await press('Filter')
  await tag.fill('tree')
  await press('Show')
  await expect.poll(ids).toEqual(['7'])
  expect(await tag.isVisible()).toBe(false)
  await button('Filter (1)').waitFor()
})

test('on a phone values have their names, and fields do not enlarge it', {
  viewport,
}, async () => {
  const before = (selector: string) =>
    page.evaluate(
      each =>
        [...document.querySelectorAll(each)].map(
          element => getComputedStyle(element, '::before').content,
        ),
      selector,
    )
  await openRow()
  await form.waitFor()
  const size = () => getComputedStyle(document.activeElement ?? document.body).fontSize
  expect(await page.evaluate(size)).toBe('16px')
  await member('tag').fill('mine')
  await replace(7n, 'Ficus', 'theirs')
  await press('Save')
  await heading('Plant 7 was changed').waitFor()
  expect(await before('#table tbody td')).toEqual(['"tag "', '"id "'])
  expect(await before('.states tbody tr:last-child td')).toEqual([
    '"when you opened it "',
    '"now in the store "',
    '"yours "',
  ])
  const widths = await page
    .locator('.states tbody td')
    .evaluateAll(cells =>
      cells.filter(cell => cell.getBoundingClientRect().right > innerWidth),
    )
  expect(widths, 'values outside the window').toEqual([])
})

test('the whole row opens its record, and its link is large enough', {
  plants: [[7n, 'F']],
}, async () => {
  const box = await link('7').boundingBox()
  expect(box?.width).toBeGreaterThanOrEqual(24)
  expect(box?.height).toBeGreaterThanOrEqual(24)
  await row('7').locator('td').last().click()
  await heading('Plant 7').waitFor()
})
