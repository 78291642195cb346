import { type Plant, parsePlantId } from '@plant-store/domain'
import { plant } from '@plant-store/domain/testing'
import {
  connectToBrowser,
  hasBrowser,
  type Locator,
  type Page,
  type Route,
} from '@plant-store/harness/browser'
import type {} from '@plant-store/harness/browser-setup'
import { needs } from '@plant-store/harness/vitest'
import { expect, inject, test as vitestTest } from 'vitest'
import { startStore } from './store.ts'

export type PlantParts = Readonly<Parameters<typeof plant>>

interface Options {
  /** What the store has, by default one plant. */
  readonly plants?: readonly PlantParts[]
  /** The fragment. */
  readonly place?: string
  /** By default, the tab has a token that may change plants. */
  readonly isSignedOut?: boolean
  readonly viewport?: { readonly width: number; readonly height: number }
  /** Runs in the page before its own script. */
  readonly prepare?: () => void
  readonly timeout?: number
}

export type Opened = Awaited<ReturnType<typeof open>>

/** Acts on a page that is open. */
export type Steps = (opened: Opened) => Promise<unknown>

/** Three pages of plants, from id 0. */
export const several = Array.from(
  { length: 250 },
  (_, n): PlantParts => [BigInt(n), `n${n}`],
)

/** One store and one profile for all files of a worker, which run one after another. */
let shared: ReturnType<typeof startShared> | undefined

async function startShared() {
  const store = await startStore()
  const browser = await connectToBrowser(inject('browserEndpoint'))
  const context = await browser.newContext()
  context.setDefaultTimeout(30_000)
  // These keep their processes for the tabs of all tests: a tab begins in that of the
  // first, and gets that of the second for the page. Starting both is half of a test.
  await context.newPage()
  const anchor = await context.newPage()
  await anchor.goto(`${store.url}/browse`)
  const kept = context.pages()
  return { store, context, kept, token: store.token() }
}

/**
 * Tests the page in a tab of its own. Its console also complains about what the policy
 * forbids, such as another server.
 */
export function test(name: string, ...given: [Steps] | [Options, Steps]): void {
  const [options, steps] = given.length === 2 ? given : [{}, given[0]]
  const { timeout } = options
  const settings = { ...needs('chromium', hasBrowser), ...(timeout && { timeout }) }
  vitestTest(name, settings, async () => {
    shared ??= startShared()
    await using opened = await open(await shared, options)
    await steps(opened)
  })
}

async function open({ store, context, kept, token }: Shared, options: Options) {
  const { plants = [[7n, 'Ficus', 'tree']], place = '', viewport, prepare } = options
  await store.fill(plants)
  const page = await context.newPage()
  if (viewport) {
    await page.setViewportSize(viewport)
  }
  const requested: string[] = []
  const complaints = watch(page, requested)
  if (!options.isSignedOut) {
    await page.addInitScript(keepToken, token)
  }
  if (prepare) {
    await page.addInitScript(prepare)
  }
  await page.goto(`${store.url}/browse${place}`)
  return {
    page,
    requested,
    token,
    store,
    ...createFinders(page),
    ...createHolds(page),
    /** Changes a plant as another client does. */
    replace: (...parts: PlantParts) => store.plants.replace(plant(...parts)),
    stored: (id: bigint): Promise<Plant | undefined> =>
      store.plants.find(parsePlantId(id)).then(
        ({ plant }) => plant,
        () => undefined,
      ),
    async [Symbol.asyncDispose]() {
      const tabs = context.pages().filter(tab => !kept.includes(tab))
      await Promise.all(tabs.map(tab => tab.close()))
      expect(complaints, 'what the console says').toEqual([])
    },
  }
}

type Shared = Awaited<ReturnType<typeof startShared>>

/** Signs the tab in, before the page is loaded for the first time. */
function keepToken(token: string): void {
  if (window.name === '') {
    window.name = 'signed in'
    sessionStorage.setItem('/ token', token)
  }
}

/** Returns a list that gets what the page's console complains about. */
function watch(page: Page, requested: string[]): readonly string[] {
  const complaints: string[] = []
  page.on('request', request => requested.push(request.url()))
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => {
    const isExpected = /the server responded with a status of|net::ERR_/.test(
      message.text(),
    )
    if (message.type() === 'error' && !isExpected) {
      complaints.push(message.text())
    }
  })
  return complaints
}

function createFinders(page: Page) {
  // If there are several, the last one is in the uppermost dialog.
  const named = (role: 'button' | 'link', name: string) =>
    page.getByRole(role, { name, exact: true })
  const button = (name: string) => named('button', name).last()
  // Below a dialog nothing takes the focus, so a text that is filled in would be lost.
  const list = page.locator('body:not(:has(dialog))')
  const form = page.locator('dialog.record').last()
  const row = (id: string) => list.locator(`#table tr[data-id="${id}"]`)
  return {
    button,
    dialog: page.getByRole('dialog'),
    /** The uppermost dialog of a record, and its field of a member. */
    form,
    problem: form.locator('.problem').first(),
    alert: form.getByRole('alert'),
    member: (name: string) => form.getByLabel(name, { exact: true }),
    tokenField: page.getByLabel('Access token'),
    signInAlert: page.locator('.sign-in').getByRole('alert'),
    /** The line that says what has happened, and what the table shows. */
    status: page.getByRole('status').first(),
    rows: page.locator('#rows'),
    total: page.locator('#total'),
    empty: page.locator('#empty'),
    unsaved: page.locator('#unsaved'),
    refusal: page.locator('#refusal'),
    ids: () => page.locator('#table td.integer').allTextContents(),
    /** The name and the tag of each row. */
    cells: () => page.locator('#table tbody :is(th, td:not(.integer))').allTextContents(),
    /** The values in a conflict. */
    states: () => page.locator('.states tbody td').allTextContents(),
    row,
    link: (id: string) => row(id).locator('a').first(),
    openRow: (id = '7') => row(id).locator('a').first().click(),
    press: (name: string) => button(name).click(),
    follow: (name: string) => named('link', name).click(),
    /** The row that has the focus, or else the text of the element that has it. */
    focused: () =>
      page.evaluate(() => {
        const { activeElement } = document
        const focusedRow = activeElement?.closest('tr')
        return focusedRow?.dataset['id'] ?? activeElement?.textContent
      }),
    hash: () => new URL(page.url()).hash,
    goTo: (place: string) => page.evaluate(to => location.assign(to), place),
    /**
     * Reloads the page once it shows its list. The browser drops the reload if the page
     * still goes back in its history, because a form was closed.
     */
    async reload() {
      await list.waitFor()
      await page.waitForURL(url => !url.hash.includes('/'))
      await page.reload()
    },
    filter: (name: string) => list.locator('#filters').getByLabel(name, { exact: true }),
    heading: (name: string | RegExp) => page.getByRole('heading', { name }),
  }
}

function createHolds(page: Page) {
  /** Decides what becomes of the requests of plants with a method. */
  const answer = (method: string, act: (route: Route) => Promise<unknown>) =>
    page.route(/\/plants\/-?\d+$/, route =>
      route.request().method() === method ? act(route) : route.fallback(),
    )
  return {
    answer,
    /** Holds such requests back until the returned function is called. */
    async hold(method: string, then: 'continue' | 'abort' = 'continue') {
      const released = Promise.withResolvers<void>()
      await answer(method, async route => {
        await released.promise
        await route[then]()
      })
      return () => released.resolve()
    },
    /** Holds a key long enough for it to be repeated. */
    async holdKey(key: string) {
      for (let count = 0; count < 5; count++) {
        await page.keyboard.down(key)
      }
      await page.keyboard.up(key)
    },
  }
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Access token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Waits until an element has a text. */
export async function shows(locator: Locator, text: string): Promise<void> {
  await expect.poll(() => locator.textContent()).toContain(text)
}
