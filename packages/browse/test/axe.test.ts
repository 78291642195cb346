import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { scopesByChoice } from '@plant-store/access'
import { expect } from 'vitest'
import { type Steps, shows, signIn, test } from './page.ts'

const script = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const axe = readFileSync(script, 'utf8')

/** The part of axe-core that the test uses. */
interface Axe {
  readonly axe: {
    run(options: object): Promise<{
      violations: readonly { id: string; nodes: readonly { html: string }[] }[]
    }>
  }
}

/** Two views have all colors and both layouts. The others can only lack contrast. */
const views = [
  { width: 1200, colorScheme: 'light' },
  { width: 1200, colorScheme: 'dark', runOnly: ['color-contrast'] },
  { width: 375, colorScheme: 'light', runOnly: ['color-contrast'] },
  { width: 375, colorScheme: 'dark' },
] as const

/** States of the page in their order: the steps of each begin in the one before. */
const states: readonly (readonly [name: string, reach: Steps])[] = [
  ['the sign-in', ({ tokenField }) => tokenField.waitFor()],
  ['the list', ({ page, token }) => signIn(page, token)],
  [
    'a form',
    async ({ openRow, member }) => {
      await openRow()
      await member('name').fill('Ficus mine')
    },
  ],
  [
    'the question before what was typed is lost',
    async ({ press, heading }) => {
      await press('Close')
      await heading('Plant 7 is not saved.').waitFor()
    },
  ],
  [
    'a conflict',
    async ({ press, heading, replace }) => {
      await press('Go on editing')
      // It has a sign inside its mark.
      await replace(7n, 'Ficus  theirs')
      await press('Save')
      await heading('Plant 7 was changed').waitFor()
    },
  ],
  [
    'a change that has failed after its form was closed',
    async ({ press, hold, page, unsaved }) => {
      await press('Go on editing')
      const release = await hold('PUT', 'abort')
      await press('Save')
      await press('Close')
      release()
      await shows(unsaved, 'Plant 7 was changed')
      await page.unrouteAll()
    },
  ],
  [
    'the question before a plant is deleted',
    async ({ press, heading }) => {
      await press('Go on editing')
      await press('Delete')
      await heading('Delete Ficus (7)?').waitFor()
    },
  ],
  [
    'a list without a match, after a message',
    async ({ press, filter, empty }) => {
      await press('Delete 7')
      // The plant has changed since it was read, so the page asks again.
      await press('Delete 7')
      await filter('tag').fill('none')
      await press('Show')
      await shows(empty, 'No plant matches.')
    },
  ],
  [
    'a list that cannot be read',
    async ({ press, refusal, page }) => {
      await page.route('**/plants?*', route => route.abort())
      await press('Show')
      await shows(refusal, 'The list cannot be read')
      await page.unrouteAll()
    },
  ],
  [
    'an empty store',
    async ({ follow, empty, store }) => {
      await store.fill([])
      await follow('plants')
      await shows(empty, 'No plants yet.')
    },
  ],
  [
    'the sign-in after a refused change',
    async ({ press, page, member, signInAlert, store }) => {
      await press('New')
      await member('id').fill('8')
      const token = store.token(scopesByChoice.read)
      await page.evaluate(to => sessionStorage.setItem('/ token', to), token)
      await press('Save')
      await shows(signInAlert, '(40301)')
    },
  ],
  [
    'a form that is read only',
    async ({ press, follow, openRow, form, store }) => {
      await press('Go on editing')
      await press('Close')
      await press('Discard what I typed')
      await store.fill([[8n, 'eight']])
      await follow('plants')
      await openRow('8')
      await form.waitFor()
      await expect.poll(() => form.locator('[readonly]').count()).toBe(2)
    },
  ],
]

test('axe finds nothing in any state, light or dark, wide or narrow', {
  plants: [
    [7n, 'Ficus', 'tree'],
    [8n, ''],
  ],
  isSignedOut: true,
  // It judges the page 48 times, which is slow by nature on a busy machine.
  timeout: 240_000,
}, async opened => {
  const { page } = opened
  await page.evaluate(axe)
  for (const [state, reach] of states) {
    // The steps use the filters, which a narrow page folds away.
    await page.setViewportSize({ width: 1200, height: 740 })
    await reach(opened)
    for (const { width, colorScheme, ...options } of views) {
      await page.setViewportSize({ width, height: 740 })
      await page.emulateMedia({ colorScheme })
      const found = await page.evaluate(runAxe, options)
      expect(found, `${state}, ${colorScheme}, ${width} px`).toEqual([])
    }
  }
})

/** Returns what axe finds, and whether the page is wider than the window. */
async function runAxe(options: object): Promise<readonly string[]> {
  const { axe } = globalThis as unknown as Axe
  const { violations } = await axe.run({ resultTypes: ['violations'], ...options })
  const found = violations.map(({ id, nodes }) => {
    const elements = nodes.map(({ html }) => html)
    return `${id}: ${elements.join(' ')}`
  })
  const { scrollWidth, clientWidth } = document.documentElement
  return scrollWidth > clientWidth ? [...found, 'the page is too wide'] : found
}
