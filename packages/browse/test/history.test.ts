import { hasFirefox, startFirefox } from '@plant-store/harness/firefox'
import { needs } from '@plant-store/harness/vitest'
import { expect, test as vitestTest } from 'vitest'
import {
  empty,
  filter,
  follow,
  hash,
  ids,
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

test('the link to the list that is shown reads it again', async () => {
  await shows(rows, '1 row')
  const lengthBefore = await page.evaluate(() => history.length)
  await store.fill([[8n, 'eight']])

  await follow('plants')

  await expect.poll(ids).toEqual(['8'])
  expect(await page.evaluate(() => history.length)).toBe(lengthBefore)
})

/** Expressions that are true in Firefox before a sign-out, and after it and Back. */
const memories = [
  ['/browse', has('Ficus'), has('Access token')],
  [
    '/docs',
    "!!document.querySelector('.locked')",
    "!!document.querySelector('.unlocked')",
  ],
] as const

function has(text: string): string {
  return `document.body.innerText.includes('${text}')`
}

vitestTest(
  'Firefox goes back once from a text, and keeps no token in memory',
  {
    ...needs('firefox-esr', hasFirefox),
    // Firefox makes a profile before it starts, which is slow by nature.
    timeout: 120_000,
  },
  async () => {
    await using store = await startStore()
    await store.fill([[7n, 'Ficus']])
    await using firefox = await startFirefox()
    const { evaluate, back } = firefox
    const open = (path: string) => firefox.open(store.url + path)
    const until = (expression: string) =>
      expect.poll(() => evaluate(expression), { message: expression }).toBe(true)
    const click = async (text: string) => {
      const controls = "[...document.querySelectorAll('a, button')]"
      const found = `${controls}.findLast(each => each.textContent === '${text}')`
      await until(`!!${found}`)
      await evaluate(`${found}.click()`)
    }
    const signIn = `sessionStorage.setItem('/ token', '${store.token()}')`

    /** Signs in on a page that shows nothing of the store, and opens another. */
    const openSignedIn = async (path: string) => {
      await open('/browse/page.css')
      await evaluate(signIn)
      await open(path)
    }
    const signOutAndGoBack = async () => {
      await open('/browse/page.css')
      await evaluate('sessionStorage.clear()')
      await back()
    }

    for (const [path, signedIn, afterBack] of memories) {
      await openSignedIn(path)
      await until(signedIn)
      await signOutAndGoBack()
      await until(afterBack)
    }

    // This page has no secret, and proves that Firefox keeps what it may. It does not
    // always: the request of the next page may count as one that still loads.
    const isKept = async () => {
      await openSignedIn('/browse/forms.js')
      await evaluate('self.isKept = true')
      await signOutAndGoBack()
      await until("location.pathname === '/browse/forms.js'")
      return evaluate('self.isKept')
    }
    await expect.poll(isKept).toBe(true)

    await openSignedIn('/browse')
    await click('Ficus')
    await click('Close')
    await click('plants')
    await evaluate('history.replaceState(null, "")')
    await click('Ficus')
    await until("!!document.querySelector('textarea')")
    await evaluate("document.querySelector('textarea').value = 'typed'")

    await back()
    await click('Go on editing')

    await until("location.hash === '#plants/7'")
    await until("document.querySelector('textarea').value === 'typed'")
    await click('Close')
    await click('Discard what I typed')
    await until("!document.querySelector('dialog') && location.hash === '#plants'")
  },
)

/** Lets `history.back()` wait for `goBack()`. */
function holdBack(): void {
  const back = history.back.bind(history)
  history.back = () => Object.assign(window, { goBack: back })
}
