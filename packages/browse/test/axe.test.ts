import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { scopesByChoice } from '@plant-store/access'
import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { hold, type Steps, shows, signIn, usePage } from './page.ts'

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

describe('axe', needs('chromium', hasBrowser), () => {
  const { open, fill, replace, ...fixture } = usePage()

  /** States of the page in their order: the steps of each begin in the one before. */
  const states: readonly (readonly [name: string, reach: Steps])[] = [
    ['the sign-in', async () => {}],
    ['the list', ({ page }) => signIn(page, fixture.token())],
    [
      'a form',
      async ({ openRow, member }) => {
        await openRow('7')
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
      async ({ press, heading }) => {
        await press('Go on editing')
        // It has a sign inside its mark.
        await replace(7n, 'Ficus  theirs')
        await press('Save')
        await heading('Plant 7 was changed').waitFor()
      },
    ],
    [
      'a change that has failed after its form was closed',
      async ({ press, page }) => {
        await press('Go on editing')
        const release = await hold(page, 'PUT', '7', 'abort')
        await press('Save')
        await press('Close')
        release()
        await shows(page.locator('#unsaved'), 'Plant 7 was changed')
        await page.unroute('**/plants/7')
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
      async ({ press, filter, page }) => {
        await press('Delete 7')
        // The plant has changed since it was read, so the page asks again.
        await press('Delete 7')
        await filter('tag').fill('none')
        await press('Show')
        await shows(page.locator('#empty'), 'No plant matches.')
      },
    ],
    [
      'a list that cannot be read',
      async ({ press, refusal, page }) => {
        await page.route('**/plants?*', route => route.abort())
        await press('Show')
        await shows(refusal, 'The list cannot be read')
      },
    ],
    [
      'an empty store',
      async ({ follow, page }) => {
        await page.unroute('**/plants?*')
        await fill()
        await follow('plants')
        await shows(page.locator('#empty'), 'No plants yet.')
      },
    ],
    [
      'the sign-in after a refused change',
      async ({ press, page, member }) => {
        await press('New')
        await member('id').fill('8')
        const token = fixture.store().token(scopesByChoice.read)
        await page.evaluate(to => sessionStorage.setItem('/ token', to), token)
        await press('Save')
        await page.getByText('(40301)').waitFor()
      },
    ],
    [
      'a form that is read only',
      async ({ press, follow, openRow, form, page }) => {
        await press('Go on editing')
        await press('Close')
        await press('Discard what I typed')
        await fill([8n, 'eight'])
        await follow('plants')
        await openRow('8')
        await form.waitFor()
        await page.getByText('Read only').waitFor({ state: 'attached' })
      },
    ],
  ]

  // It judges the page 48 times, which is slow by nature on a busy machine.
  test('finds nothing in any state, light or dark, wide or narrow', {
    timeout: 240_000,
  }, async () => {
    await fill([7n, 'Ficus', 'tree'], [8n, ''])
    await using opened = await open({ as: '' })
    const { page } = opened
    await page.getByLabel('Access token').waitFor()
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
