import { hasFirefox, startFirefox } from '@plant-store/harness/firefox'
import { needs } from '@plant-store/harness/vitest'
import { expect, test as vitestTest } from 'vitest'
import {
  dialog,
  empty,
  filter,
  follow,
  goTo,
  hash,
  heading,
  ids,
  member,
  openRow,
  page,
  press,
  rows,
  shows,
  status,
  store,
  test,
} from './page.ts'
import { startStore } from './store.ts'

test('what is asked for while the tab goes back is shown', {
  plants: [
    [7n, 'Ficus'],
    [8n, 'eight'],
  ],
  prepare: holdBack,
}, async () => {
  await openRow()
  await press('Delete')
  await press('Delete 7')
  await shows(status, 'Plant 7 is deleted.')

  await filter('tag').fill('none')
  await press('Show')
  await page.evaluate('goBack()')

  await shows(empty, 'No plant matches.')
  await expect.poll(hash).toBe('#plants?tag=none')
})

test('Back that is refused goes back once, also to an unknown entry', {
  place: '#plants?tag=none',
}, async () => {
  await goTo('#plants')
  await shows(rows, '1 row')
  // Firefox leaves such an entry after a click on a link to the place that is shown.
  await page.evaluate(() => history.replaceState(null, '', '#plants'))
  await openRow()
  await member('name').fill('typed')

  await page.evaluate(() => history.back())
  await heading('Plant 7 is not saved.').waitFor()
  await press('Go on editing')

  await expect.poll(hash).toBe('#plants/7')
  expect(await member('name').inputValue()).toBe('typed')
  await press('Close')
  await press('Discard what I typed')
  await expect.poll(hash).toBe('#plants')
  expect(await dialog.count()).toBe(0)
})

test('the link to the list that is shown reads it again', async () => {
  await shows(rows, '1 row')
  const lengthBefore = await page.evaluate(() => history.length)
  await store.fill([[8n, 'eight']])

  await follow('plants')

  await expect.poll(ids).toEqual(['8'])
  expect(await page.evaluate(() => history.length)).toBe(lengthBefore)
})

vitestTest(
  'Back that is refused asks once and stays, in Firefox, too',
  {
    ...needs('firefox-esr', hasFirefox),
    // Firefox makes a profile before it starts, which is slow by nature.
    timeout: 120_000,
  },
  async () => {
    await using store = await startStore()
    await store.fill([[7n, 'Ficus']])
    await using firefox = await startFirefox()
    const { open, evaluate, back } = firefox
    const click = async (text: string) => {
      const controls = "[...document.querySelectorAll('a, button')]"
      const found = `${controls}.findLast(each => each.textContent === '${text}')`
      await expect.poll(() => evaluate(`!!${found}`), { message: text }).toBe(true)
      await evaluate(`${found}.click()`)
    }
    await open(`${store.url}/browse`)
    await evaluate(`sessionStorage.setItem('/ token', '${store.token()}')`)
    await open(`${store.url}/browse`)
    await click('Ficus')
    await click('Close')
    await click('plants')
    await click('Ficus')
    await expect.poll(() => evaluate("!!document.querySelector('textarea')")).toBe(true)
    await evaluate("document.querySelector('textarea').value = 'typed'")

    await back()
    await click('Go on editing')

    const state = () =>
      evaluate(
        "[location.hash, document.querySelector('textarea')?.value, document.querySelectorAll('dialog').length].join()",
      )
    await expect.poll(state).toBe('#plants/7,typed,1')
    await click('Close')
    await click('Discard what I typed')
    await expect.poll(state).toBe('#plants,,0')
  },
)

/** Lets `history.back()` wait for `goBack()`. */
function holdBack(): void {
  const back = history.back.bind(history)
  history.back = () => Object.assign(window, { goBack: back })
}
