import { expect } from 'vitest'
import {
  button,
  filter,
  follow,
  form,
  hash,
  heading,
  ids,
  member,
  openRow,
  page,
  press,
  reload,
  rows,
  shows,
  status,
  store,
  test,
  tokenField,
  total,
} from './page.ts'

const big = 2n ** 53n + 1n

test('a page kept in memory forgets what it showed after a sign-out', {
  plants: [[7n, 'SECRET']],
}, async () => {
  await shows(rows, '1 row')
  await page.evaluate(() => {
    sessionStorage.clear()
    dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))
  })
  await tokenField.waitFor()
  expect(await page.content()).not.toContain('SECRET')
})

for (const [tag, sign] of [
  ['a%0Ab', 'a ↵ b'],
  ['', '(empty)'],
] as const) {
  test(`a filter that its field cannot show is kept, seen, cleared: ${sign}`, {
    plants: [
      [7n, 'Ficus', 'a\nb'],
      [8n, 'eight', ''],
    ],
    place: `#plants?tag=${tag}`,
  }, async () => {
    await shows(rows, '1 row')
    expect(await filter('tag').getAttribute('placeholder')).toBe(sign)
    await press('Show')
    await shows(rows, '1 row')
    expect(hash()).toBe(`#plants?tag=${tag}`)
    await press('Clear tag')
    await shows(rows, '2 rows')
  })
}

test('"/" goes to the search, and Ctrl+Enter saves', async () => {
  await shows(rows, '1 row')
  await page.keyboard.press('/')
  await page.keyboard.type('a/b')
  expect(await filter('name contains').inputValue()).toBe('a/b')
  await openRow()
  await member('name').fill('mine')
  await page.keyboard.press('Control+Enter')
  await shows(status, 'Plant 7 is saved.')
})

test('a click on a tag shows its plants, and the title names what is shown', {
  plants: [
    [7n, 'Ficus', 'tree'],
    [8n, 'eight'],
  ],
}, async () => {
  await follow('tree')
  await expect.poll(ids).toEqual(['7'])
  await shows(total, '1 in all')
  expect(hash()).toBe('#plants?tag=tree')
  await expect.poll(() => page.title()).toBe('plants: tag tree – Plant Store')
  await openRow()
  await expect.poll(() => page.title()).toBe('Ficus (7) – Plant Store')
})

test('a record copies its parts, and leads to those beside it', {
  plants: [
    [big, 'Ficus', 'tree'],
    [big + 1n, 'last'],
  ],
}, async () => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await openRow(`${big}`)
  const parts = {
    id: `${big}`,
    link: `${store.url}/browse#plants/${big}`,
    JSON: `{"id":${big},"name":"Ficus","tag":"tree"}`,
  }
  for (const [name, text] of Object.entries(parts)) {
    await press(`Copy ${name}`)
    expect(await page.evaluate(() => navigator.clipboard.readText()), name).toBe(text)
  }

  await press('Next plant')
  await heading(`Plant ${big + 1n}`).waitFor()
  await press('Next plant')
  await shows(form.getByRole('status'), 'No next plant')
  await press('Previous plant')
  await heading(`Plant ${big}`).waitFor()
})

test('a start that fails says how to try again', async () => {
  await shows(rows, '1 row')
  await page.route('**/chunk.js', route => route.abort())
  await reload()
  await shows(page.locator('#starting'), 'try again')
})

test('a URL with a name and password works', async () => {
  await shows(rows, '1 row')
  const { host } = new URL(page.url())
  await page.goto(`http://user:secret@${host}/browse`)
  await shows(rows, '1 row')
})

test('a record is printed once and whole', {
  plants: [[7n, 'Ficus', 'a line\n'.repeat(200)]],
}, async () => {
  await shows(rows, '1 row')
  await page.emulateMedia({ media: 'print' })
  expect(await filter('tag').isVisible(), 'a filter').toBe(false)
  await openRow()
  const tag = member('tag')
  await tag.waitFor()
  const hidden = await tag.evaluate(field => field.scrollHeight - field.clientHeight)
  expect(hidden).toBe(0)
  expect(await page.locator('#table').isVisible(), 'the list').toBe(false)
  expect(await button('Save').isVisible(), 'a button').toBe(false)
})
