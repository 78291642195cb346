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
  /** The plants in the store. By default, it has one. */
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

/** Acts on the tab. */
export type Steps = () => Promise<unknown>

/** Returns plants with ids from 0. */
export const many = (count: number) =>
  Array.from({ length: count }, (_, n): PlantParts => [BigInt(n), `n${n}`])

/** Three pages of plants. */
export const several = many(250)

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
  return { store, context, kept: context.pages(), token: store.token() }
}

/** These variables belong to the test that runs: its tab and its store. */
export let page: Page
export let store: Awaited<ReturnType<typeof startStore>>
/** A token that may change plants. */
export let token: string
/** The URLs that were asked for. */
export let requested: string[]
/**
 * The page without a dialog. Below one nothing takes the focus, so a text would be
 * lost.
 */
let list: Locator
export let dialog: Locator
/** The uppermost dialog of a record. */
export let form: Locator
export let problem: Locator
export let alert: Locator
export let tokenField: Locator
export let signInAlert: Locator
/** The line that says what has happened, and what the table shows. */
export let status: Locator
export let rows: Locator
export let total: Locator
export let empty: Locator
export let unsaved: Locator
export let refusal: Locator

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
    const { context, kept, ...rest } = await shared
    store = rest.store
    token = rest.token
    page = await context.newPage()
    try {
      const complaints = await open(options)
      await steps()
      expect(complaints, 'what the console says').toEqual([])
    } finally {
      const tabs = context.pages().filter(tab => !kept.includes(tab))
      await Promise.all(tabs.map(tab => tab.close()))
    }
  })
}

/** Opens the page, and returns a list that gets what its console complains about. */
async function open(options: Options): Promise<readonly string[]> {
  const { plants = [[7n, 'Ficus', 'tree']], place = '', viewport, prepare } = options
  await store.fill(plants)
  list = page.locator('body:not(:has(dialog))')
  dialog = page.getByRole('dialog')
  form = page.locator('dialog.record').last()
  problem = form.locator('.problem').first()
  alert = form.getByRole('alert')
  tokenField = page.getByLabel('Access token')
  signInAlert = page.locator('.sign-in').getByRole('alert')
  status = page.getByRole('status').first()
  rows = page.locator('#rows')
  total = page.locator('#total')
  empty = page.locator('#empty')
  unsaved = page.locator('#unsaved')
  refusal = page.locator('#refusal')
  const complaints = watch()
  if (viewport) {
    await page.setViewportSize(viewport)
  }
  if (!options.isSignedOut) {
    await page.addInitScript(keepToken, token)
  }
  if (prepare) {
    await page.addInitScript(prepare)
  }
  await page.goto(`${store.url}/browse${place}`)
  return complaints
}

/** Signs the tab in, before the page is loaded for the first time. */
function keepToken(token: string): void {
  if (window.name === '') {
    window.name = 'signed in'
    sessionStorage.setItem('/ token', token)
  }
}

function watch(): readonly string[] {
  const complaints: string[] = []
  requested = []
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

/** Changes a plant as another client does. */
export const replace = (...parts: PlantParts) => store.plants.replace(plant(...parts))

export const stored = (id: bigint): Promise<Plant | undefined> =>
  store.plants.find(parsePlantId(id)).then(
    ({ plant }) => plant,
    () => undefined,
  )

// If there are several, the last one is in the uppermost dialog.
export const button = (name: string) =>
  page.getByRole('button', { name, exact: true }).last()

export const press = (name: string) => button(name).click()

/** Saves the record in the uppermost form, and waits until that is said. */
export async function save(id: bigint | number = 7): Promise<void> {
  await press('Save')
  await shows(status, `Plant ${id} is saved.`)
}

export const follow = (name: string) =>
  page.getByRole('link', { name, exact: true }).last().click()

/** Returns the field of a member in the uppermost dialog. */
export const member = (name: string) => form.getByLabel(name, { exact: true })

export const filter = (name: string) =>
  list.locator('#filters').getByLabel(name, { exact: true })

export const heading = (name: string | RegExp) => page.getByRole('heading', { name })

export const ids = () => page.locator('#table td.integer').allTextContents()

export const firstId = async () => (await ids())[0]

/** Returns the name and the tag of each row. */
export const cells = () =>
  page.locator('#table tbody :is(th, td:not(.integer))').allTextContents()

/** Returns the values in a conflict. */
export const states = () => page.locator('.states tbody td').allTextContents()

export const row = (id: string) => list.locator(`#table tr[data-id="${id}"]`)

export const link = (id: string) => row(id).locator('a').first()

export const openRow = (id = '7') => link(id).click()

/** Returns the id of the row that has the focus, or else the text of what has it. */
export const focused = () =>
  page.evaluate(() => {
    const { activeElement } = document
    return activeElement?.closest('tr')?.dataset['id'] ?? activeElement?.textContent
  })

export const hash = () => new URL(page.url()).hash

export const goTo = (place: string) => page.evaluate(to => location.assign(to), place)

/**
 * Reloads the page once it shows its list. The browser drops the reload if the page still
 * goes back in its history, because a form was closed.
 */
export async function reload(): Promise<void> {
  await list.waitFor()
  await page.waitForURL(url => !url.hash.includes('/'))
  await page.reload()
}

/** Decides what becomes of the requests of plants with a method. */
export const answer = (method: string, act: (route: Route) => Promise<unknown>) =>
  page.route(/\/plants\/-?\d+$/, route =>
    route.request().method() === method ? act(route) : route.fallback(),
  )

/** Holds such requests back until the returned function is called. */
export async function hold(method: string, then: 'continue' | 'abort' = 'continue') {
  const released = Promise.withResolvers<void>()
  await answer(method, async route => {
    await released.promise
    await route[then]()
  })
  return () => released.resolve()
}

/** Holds a key long enough for it to be repeated. */
export async function holdKey(key: string): Promise<void> {
  for (let count = 0; count < 5; count++) {
    await page.keyboard.down(key)
  }
  await page.keyboard.up(key)
}

export async function signIn(to: string): Promise<void> {
  await tokenField.fill(to)
  await press('Sign in')
}

/** Waits until an element has a text. */
export async function shows(locator: Locator, text: string): Promise<void> {
  await expect.poll(() => locator.textContent()).toContain(text)
}
