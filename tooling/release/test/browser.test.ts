import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Server, startServer } from '@plant-store/harness'
import {
  type Browser,
  hasBrowser,
  type Locator,
  launchBrowser,
  type Page,
} from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const token = 'plantstore_for-the-api-reference'
/** The first integer that is no JavaScript number. */
const id = '9007199254740993'
const start = (environment: Readonly<Record<string, string>> = {}) =>
  startServer({ environment: { ACCESS_TOKENS: token, ...environment } })

describe('a browser', needs('chromium', hasBrowser), () => {
  let program: Server
  let browser: Browser
  beforeAll(async () => {
    program = await start()
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await program[Symbol.asyncDispose]()
  })

  /**
   * Opens the API reference. Returns it with what it asks for and what it complains
   * about.
   */
  async function openReference(
    options: Parameters<Browser['newContext']>[0] = {},
    { url } = program,
  ) {
    const context = await browser.newContext(options)
    context.setDefaultTimeout(90_000)
    const page = await context.newPage()
    const requested: string[] = []
    const complaints: string[] = []
    page.on('request', request => requested.push(request.url()))
    page.on('pageerror', error => complaints.push(error.message))
    page.on('console', message => {
      // Chromium calls every answer that is no success an error of the page.
      if (
        message.type() === 'error' &&
        !/the server responded with a status of 4/.test(message.text())
      ) {
        complaints.push(message.text())
      }
    })
    await page.addInitScript(() => {
      document.addEventListener(
        'securitypolicyviolation',
        ({ violatedDirective, blockedURI }) => {
          console.error(`against the policy: ${violatedDirective} ${blockedURI}`)
        },
      )
    })
    await page.goto(`${url}/docs`)
    await page.locator('.opblock').first().waitFor()
    const expectQuiet = () => {
      expect(complaints).toEqual([])
      expect(
        requested.filter(
          each => !each.startsWith(`${url}/`) && !each.startsWith('data:'),
        ),
      ).toEqual([])
    }
    return { page, requested, expectQuiet, [Symbol.asyncDispose]: () => context.close() }
  }

  test('tries the interface out on the API reference', async () => {
    await using reference = await openReference({
      viewport: { width: 1200, height: 1000 },
    })
    const { page, requested, expectQuiet } = reference
    const creating = await unfold(page, 'plants-createPlant')
    const unauthorized = await execute(creating)
    expect(unauthorized.status).toBe('401')
    expect(JSON.parse(unauthorized.body)).toMatchObject({ error: 40101 })

    await authorize(page)
    const body = creating.locator('textarea.body-param__text')
    await body.fill(`{"id": ${id}, "name": "Monstera", "tag": "climber"}`)
    const created = await execute(creating)
    expect(created.status).toBe('200')
    expect(JSON.parse(created.body)).toEqual({ name: 'Monstera', tag: 'climber' })
    expect(created.curl).toContain(`"id": ${id},`)

    const refused = await execute(creating)
    expect(refused.status).toBe('400')
    expect(JSON.parse(refused.body)).toEqual({
      error: 40003,
      message: `id ${id} is already taken`,
    })

    const reading = await unfold(page, 'plants-readPlant')
    await reading.locator('input[placeholder=id]').fill(id)
    const stored = await execute(reading)
    expect(stored.status).toBe('200')
    expect(stored.body.replaceAll(/\s/g, '')).toBe(
      `{"id":${id},"name":"Monstera","tag":"climber"}`,
    )

    const batch = await execute(await unfold(page, 'plants-createPlants'))
    expect([batch.status, JSON.parse(batch.body)]).toEqual([
      '200',
      expect.objectContaining({ created: 2 }),
    ])

    const listing = await unfold(page, 'plants-listPlants')
    await listing.locator('input[placeholder=after]').fill('9007199254740992')
    const listed = await execute(listing)
    expect(listed.status).toBe('200')
    expect(listed.body).toContain(`"id": ${id},`)

    // A page that computed bounds of ids would round them.
    const models = page.locator('section.models')
    await models.locator('.models-control').click()
    await models.locator('.json-schema-2020-12').first().waitFor()
    await models
      .locator('.json-schema-2020-12-expand-deep-button')
      .evaluateAll(buttons => {
        for (const button of buttons as HTMLElement[]) {
          button.click()
        }
      })
    await expect
      .poll(() => models.textContent())
      .toContain('int64Identification number of the plant')
    expect(await page.locator('#reference').textContent()).not.toMatch(
      /922337203685477600|9\.22/,
    )
    expectQuiet()
    expect(requested.length).toBeGreaterThan(8)
  })

  test('asks the address that the page is opened at, also below a path', async () => {
    await using below = await start({ BASE_URL: 'https://plants.example/garden/store/' })
    await using reference = await openReference({}, below)
    const { page, requested, expectQuiet } = reference
    await authorize(page)
    expect((await execute(await unfold(page, 'plants-listPlants'))).status).toBe('200')
    expect(requested.filter(url => url.startsWith(`${below.url}/plants`))).toHaveLength(1)
    expectQuiet()
  })

  test('the page on operations is as dark as the system, also on phones', async () => {
    await using reference = await openReference({
      viewport: { width: 1200, height: 800 },
      colorScheme: 'dark',
    })
    const { page } = reference
    const last = page.locator('#operations-plants-createPlants')
    const box = await last.boundingBox()
    assert(box !== null, 'the last operation is shown')
    expect(box.y + box.height).toBeLessThan(800)

    const colors = () =>
      page.locator('.info .title').evaluate(element => ({
        text: getComputedStyle(element).color,
        background: getComputedStyle(document.body).backgroundColor,
      }))
    const dark = await colors()
    expect(lightness(dark.text)).toBeGreaterThan(0.7)
    expect(lightness(dark.background)).toBeLessThan(0.2)
    await page.emulateMedia({ colorScheme: 'light' })
    const textLightness = async () => {
      const { text } = await colors()
      return lightness(text)
    }
    await expect.poll(textLightness).toBeLessThan(0.4)

    await page.setViewportSize({ width: 375, height: 740 })
    const widths = () =>
      page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth])
    expect(await widths()).toEqual([375, 375])
    await authorize(page)
    // The page clicks itself, because a click from here waits until nothing moves.
    await page.locator('.opblock-summary-control').evaluateAll(controls => {
      for (const control of controls as HTMLElement[]) {
        control.click()
      }
    })
    const shown = () =>
      page.locator('.opblock textarea, .opblock .example').allTextContents()
    await expect.poll(async () => (await shown()).length).toBeGreaterThan(60)
    await expect.poll(async () => (await shown()).join()).toContain('Monstera deliciosa')
    const examples = await shown()
    expect(
      examples.filter(text => /"string"|: 0\b(?!,\s*"refused")|^string$/.test(text)),
    ).toEqual([])
    await execute(page.locator('#operations-plants-createPlant'))
    await page.locator('section.models .models-control').click()
    expect(await widths()).toEqual([375, 375])
  })

  test('keeps the token over a reload of the page, and no other tab has it', async () => {
    await using reference = await openReference()
    const { page } = reference
    await authorize(page)
    const status = async (tab: Page) =>
      (await execute(await unfold(tab, 'plants-listPlants'))).status
    await page.reload()
    expect(await status(page)).toBe('200')
    const tab = await page.context().newPage()
    await tab.goto(`${program.url}/docs`)
    expect(await status(tab)).toBe('401')

    await page.locator('.auth-wrapper .authorize').first().click()
    await page.locator('.modal-ux .auth-btn-wrapper button').first().click()
    await page.reload()
    expect(await status(page)).toBe('401')
  })

  test('lets the page of a named origin call, and no other', async () => {
    const site = createServer((_request, response) =>
      response.setHeader('content-type', 'text/html').end('<p>a page</p>'),
    )
    site.listen(0, '127.0.0.1')
    await once(site, 'listening')
    const { port } = site.address() as AddressInfo
    await using open = await start({ CORS_ORIGINS: `http://127.0.0.1:${port}` })
    const page = await browser.newPage()
    const create = () =>
      page.evaluate(
        async ([url, token]) => {
          const headers = {
            ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json' },
            'x-request-id': 'mine',
          }
          const body = '{"id": 1, "name": "n"}'
          try {
            const answer = await fetch(`${url}/plants`, { method: 'POST', headers, body })
            return [
              answer.status,
              await answer.text(),
              answer.headers.get('x-request-id'),
            ]
          } catch (error) {
            return [(error as Error).name]
          }
        },
        [open.url, token] as const,
      )
    await page.goto(`http://127.0.0.1:${port}/`)
    expect(await create()).toEqual([200, '{"name":"n"}', 'mine'])
    await page.goto(`http://localhost:${port}/`)
    expect(await create()).toEqual(['TypeError'])
    site.closeAllConnections()
    site.close()
  })
})

/** Opens an operation of the page. */
async function unfold(page: Page, operation: string): Promise<Locator> {
  const block = page.locator(`#operations-${operation}`)
  await block.locator('.opblock-summary-control').click()
  return block
}

/** Sends what is filled in, and reads the answer that the page shows. */
async function execute(
  operation: Locator,
): Promise<{ status: string; body: string; curl: string }> {
  const clear = operation.locator('.btn-clear')
  if (await clear.isVisible()) {
    await clear.click()
  }
  await operation.locator('.execute').click()
  const row = operation.locator('.live-responses-table tbody .response')
  await row.waitFor()
  const status = await row.locator('.response-col_status').textContent()
  return {
    status: status?.trim().slice(0, 3) ?? '',
    body: (await row.locator('.highlight-code pre').first().textContent()) ?? '',
    curl: (await operation.locator('.curl').textContent()) ?? '',
  }
}

async function authorize(page: Page): Promise<void> {
  await page.locator('.auth-wrapper .authorize').first().click()
  await page.locator('.modal-ux input').fill(token)
  await page.locator('.modal-ux button[type=submit]').click()
  await page.locator('.modal-ux .btn-done').click()
}

/** Returns the lightness of a color such as `rgb(28, 32, 34)`, from 0 to 1. */
function lightness(color: string): number {
  const parts = color.match(/\d+/g)?.slice(0, 3).map(Number) ?? []
  return parts.reduce((sum, part) => sum + part, 0) / (3 * 255)
}
