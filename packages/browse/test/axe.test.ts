import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { scopesByChoice } from '@plant-store/access'
import { expect } from 'vitest'
import {
  empty,
  filter,
  follow,
  form,
  heading,
  hold,
  member,
  openRow,
  page,
  press,
  refusal,
  replace,
  type Steps,
  shows,
  signIn,
  signInAlert,
  store,
  test,
  token,
  tokenField,
  unsaved,
} from './page.ts'

const script = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const axe = readFileSync(script, 'utf8')

/**
 * Both have all colors, each has one of the layouts. The low one is that of a window
 * which is enlarged to 400 %.
 */
const views = [
  { width: 1200, height: 740, colorScheme: 'light' },
  { width: 320, height: 256, colorScheme: 'dark' },
] as const

/** States of the page in their order: the steps of each begin in the one before. */
const states: Readonly<Record<string, Steps>> = {
  'the sign-in': () => tokenField.waitFor(),
  'the list': () => signIn(token),
  async 'a form'() {
    await openRow()
    await member('name').fill('Ficus mine')
  },
  async 'the question before what was typed is lost'() {
    await press('Close')
    await heading('Plant 7 is not saved.').waitFor()
  },
  async 'a conflict'() {
    await press('Go on editing')
    // It has a sign inside its mark.
    await replace(7n, 'Ficus  theirs')
    await press('Save')
    await heading('Plant 7 was changed').waitFor()
  },
  async 'a change that has failed after its form was closed'() {
    await press('Go on editing')
    const release = await hold('PUT', 'abort')
    await press('Save')
    await press('Close')
    release()
    await shows(unsaved, 'Plant 7 was changed')
    await page.unrouteAll()
  },
  async 'the question before a plant is deleted'() {
    await press('Go on editing')
    await press('Delete')
    await heading('Delete Ficus (7)?').waitFor()
  },
  async 'a list without a match, after a message'() {
    await press('Delete 7')
    // The plant has changed since it was read, so the page asks again.
    await press('Delete 7')
    await filter('tag').fill('none')
    await press('Show')
    await shows(empty, 'No plant matches.')
  },
  async 'a list that cannot be read'() {
    await page.route('**/plants?*', route => route.abort())
    await press('Show')
    await shows(refusal, 'The list cannot be read')
    await page.unrouteAll()
  },
  async 'an empty store'() {
    await store.fill([])
    await follow('plants')
    await shows(empty, 'No plants yet.')
  },
  async 'the sign-in after a refused change'() {
    await press('New')
    await member('id').fill('8')
    const token = store.token(scopesByChoice.read)
    await page.evaluate(to => sessionStorage.setItem('/ token', to), token)
    await press('Save')
    await shows(signInAlert, '(40301)')
  },
  async 'a form that is read only'() {
    await press('Go on editing')
    await press('Close')
    await press('Discard what I typed')
    await store.fill([[8n, 'eight']])
    await follow('plants')
    await openRow('8')
    await form.waitFor()
    await expect.poll(() => form.locator('[readonly]').count()).toBe(2)
  },
}

test('axe finds nothing in any state, light or dark, wide or narrow', {
  plants: [
    [7n, 'Ficus', 'tree'],
    [8n, ''],
  ],
  isSignedOut: true,
  // It judges the page 24 times, which is slow by nature on a busy machine.
  timeout: 120_000,
}, async () => {
  await page.evaluate(axe)
  for (const [state, reach] of Object.entries(states)) {
    // The steps use the filters, which a narrow page folds away.
    await page.setViewportSize({ width: 1200, height: 740 })
    await reach()
    for (const { colorScheme, ...size } of views) {
      await page.setViewportSize(size)
      await page.emulateMedia({ colorScheme })
      const found = await page.evaluate(judge)
      expect(found, `${state}, ${size.width} px`).toEqual([])
    }
  }
})

/** Returns what axe finds, and what would have to be scrolled sideways. */
const judge = `axe.run({ resultTypes: ['violations'] }).then(({ violations }) => [
  ...violations.map(({ id, nodes }) => id + nodes.map(({ html }) => html)),
  ...[...document.querySelectorAll('html, dialog, dialog *')]
    .filter(each => each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1)
    .map(({ outerHTML }) => outerHTML),
])`
