import { type Plant, parsePlantId } from '@plant-store/domain'
import { plant } from '@plant-store/domain/testing'
import {
  type Browser,
  connectToBrowser,
  type Locator,
  type Page,
} from '@plant-store/harness/browser'
import type {} from '@plant-store/harness/browser-setup'
import { beforeAll, expect, inject } from 'vitest'
import { startStore } from './store.ts'

type Store = Awaited<ReturnType<typeof startStore>>

export interface OpenOptions {
  /** The fragment. */
  readonly place?: string
  /** The token to sign in with, by default one that may change plants. `''` is none. */
  readonly as?: string
  readonly url?: string
  readonly viewport?: { readonly width: number; readonly height: number }
  /** Runs in the page before its own script. */
  readonly prepare?: () => void
}

/** Three pages of plants, from id 0. */
export const several = Array.from({ length: 250 }, (_, n) => plant(BigInt(n), `n${n}`))

type PlantParts = Parameters<typeof plant>

export type Opened = Awaited<ReturnType<ReturnType<typeof usePage>['open']>>

/** Acts on a page that is open. */
export type Steps = (opened: Opened) => Promise<unknown>

interface Shared {
  readonly store: Store
  readonly browser: Browser
  readonly token: string
}

/** One store for all files of a worker, which run one after another. */
let shared: Promise<Shared> | undefined

async function startShared(): Promise<Shared> {
  const store = await startStore()
  const browser = await connectToBrowser(inject('browserEndpoint'))
  return { store, browser, token: store.token() }
}

/** Uses the store and the browser for the tests of a file. */
export function usePage() {
  let store: Store
  let browser: Browser
  let token: string
  beforeAll(async () => {
    shared ??= startShared()
    ;({ store, browser, token } = await shared)
  })

  async function open(options: OpenOptions = {}) {
    const { place = '', as = token, url = store.url, viewport, prepare } = options
    const context = await browser.newContext(viewport && { viewport })
    context.setDefaultTimeout(30_000)
    const page = await context.newPage()
    const requested: string[] = []
    const complaints = watch(page, requested)
    if (prepare) {
      await page.addInitScript(prepare)
    }
    await page.goto(`${url}/browse${place}`)
    if (as !== '') {
      await signIn(page, as)
    }
    return {
      page,
      requested,
      ...createFinders(page),
      async [Symbol.asyncDispose]() {
        await context.close()
        const foreign = requested.filter(
          each => !each.startsWith(url) && !each.startsWith('data:'),
        )
        expect(complaints, 'what the console says').toEqual([])
        expect(foreign, 'requests to other servers').toEqual([])
      },
    }
  }

  return {
    open,
    /** The store, once the tests run. */
    store: () => store,
    token: () => token,
    /** Removes all plants and creates these. */
    fill: (...plants: readonly PlantParts[]) =>
      store.fill(plants.map(parts => plant(...parts))),
    /** Changes a plant as another client does. */
    replace: (...parts: PlantParts) => store.plants.replace(plant(...parts)),
    remove: (id: bigint) => store.plants.remove(parsePlantId(id)),
    stored: (id: bigint): Promise<Plant | undefined> =>
      store.plants.find(parsePlantId(id)).then(
        ({ plant }) => plant,
        () => undefined,
      ),
  }
}

/** Returns a list that gets what the page's console complains about. */
function watch(page: Page, requested: string[]): readonly string[] {
  const complaints: string[] = []
  page.on('request', request => {
    requested.push(request.url().replace('user:secret@', ''))
  })
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => {
    const isExpected = /the server responded with a status of|net::ERR_/.test(
      message.text(),
    )
    if (message.type() === 'error' && !isExpected) {
      complaints.push(message.text())
    }
  })
  const report = () =>
    document.addEventListener('securitypolicyviolation', violation =>
      console.error(
        `against the policy: ${violation.violatedDirective} ${violation.blockedURI}`,
      ),
    )
  page.addInitScript(report)
  return complaints
}

function createFinders(page: Page) {
  // If there are several, the last one is in the uppermost dialog.
  const named = (role: 'button' | 'link', name: string) =>
    page.getByRole(role, { name, exact: true })
  const button = (name: string) => named('button', name).last()
  // Below a dialog nothing takes the focus, so a text that is filled in would be lost.
  const list = page.locator('body:not(:has(dialog))')
  const filters = list.locator('#filters')
  const form = page.locator('dialog.record').last()
  const row = (id: string) => list.locator(`#table tr[data-id="${id}"]`)
  return {
    button,
    dialog: page.getByRole('dialog'),
    /** The uppermost dialog of a record, and its field of a member. */
    form,
    member: (name: string) => form.getByLabel(name, { exact: true }),
    /** The line that says what has happened, and what the table shows. */
    status: page.getByRole('status').first(),
    rows: page.locator('#rows'),
    refusal: page.locator('#refusal'),
    ids: () => page.locator('#table td.integer').allTextContents(),
    /** The name and the tag of each row. */
    cells: () => page.locator('#table tbody :is(th, td:not(.integer))').allTextContents(),
    row,
    openRow: (id: string) => row(id).locator('a').first().click(),
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
    /**
     * Reloads the page once it shows its list. The browser drops the reload if the page
     * still goes back in its history, because a form was closed.
     */
    async reload() {
      await list.waitFor()
      await page.waitForURL(url => !url.hash.includes('/'))
      await page.reload()
    },
    filter: (name: string) => filters.getByLabel(name, { exact: true }),
    heading: (name: string | RegExp) => page.getByRole('heading', { name }),
  }
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Access token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Waits until an element has a text. */
export async function shows(locator: Locator, text: string | RegExp): Promise<void> {
  const shown = expect.poll(() => locator.textContent())
  await (typeof text === 'string' ? shown.toContain(text) : shown.toMatch(text))
}
/** Holds the requests of a plant back until the returned function is called. */
export async function hold(
  page: Page,
  method: string,
  id: string,
  then: 'continue' | 'abort' = 'continue',
): Promise<() => void> {
  const released = Promise.withResolvers<void>()
  await page.route(`**/plants/${id}`, async route => {
    if (route.request().method() !== method) {
      return route.continue()
    }
    await released.promise
    return then === 'abort' ? route.abort() : route.continue()
  })
  return () => released.resolve()
}

/** Holds a key long enough for it to be repeated. */
export async function holdKey(page: Page, key: string): Promise<void> {
  for (let count = 0; count < 5; count++) {
    await page.keyboard.down(key)
  }
  await page.keyboard.up(key)
}
