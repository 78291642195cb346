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

const { SCREENSHOT } = process.env
const token = 'plantstore_for-the-reference-page'
/** The first integer that is no JavaScript number. */
const id = '9007199254740993'

/** The picture in the README, where SCREENSHOT names a file for it: its port and times are new every time. */
async function takePicture(path: string, page: Page, operation: Locator): Promise<void> {
  await operation.locator('textarea.body-param__text').evaluate(element => {
    element.style.minHeight = '60px'
    element.style.height = '60px'
  })
  const scrolled = await page.evaluate(() => window.scrollY)
  const { x, y, width } = (await operation.boundingBox()) ?? { x: 0, y: 0, width: 0 }
  const last = await operation.locator('.live-responses-table').boundingBox()
  const height = (last?.y ?? y) + (last?.height ?? 0) - y
  await page.screenshot({ path, fullPage: true, clip: { x, y: y + scrolled, width, height } })
}

/** Everything that a page asks for, and everything that it complains about. */
async function watch(page: Page) {
  const requested: string[] = []
  const complaints: string[] = []
  page.on('request', request => requested.push(request.url()))
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => {
    // Chromium calls every answer that is no success an error of the page.
    if (message.type() === 'error' && !/the server responded with a status of 4/.test(message.text())) {
      complaints.push(message.text())
    }
  })
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      console.error(`against the policy: ${violatedDirective} ${blockedURI}`)
    })
  })
  return { requested, complaints }
}

/** Sends what is filled in, and reads the answer that the page shows. */
async function execute(operation: Locator): Promise<{ status: string; body: string; curl: string }> {
  const clear = operation.locator('.btn-clear')
  if (await clear.isVisible()) await clear.click()
  await operation.locator('.execute').click()
  const row = operation.locator('.live-responses-table tbody .response')
  await row.waitFor()
  return {
    status: (await row.locator('.response-col_status').textContent())?.trim().slice(0, 3) ?? '',
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

const openService = (baseUrl = '') =>
  startServer({
    environment: { ACCESS_TOKENS: token, BASE_URL: baseUrl },
  })

describe('the reference page', needs('chromium', hasBrowser), () => {
  let program: Server
  let browser: Browser
  beforeAll(async () => {
    program = await openService()
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await program[Symbol.asyncDispose]()
  })

  test('tries the interface out', async () => {
    const page = await browser.newPage({ viewport: { width: 1200, height: 1000 } })
    const { requested, complaints } = await watch(page)
    await page.goto(`${program.url}/docs`)

    const creating = page.locator('#operations-plants-createPlant')
    await creating.locator('.opblock-summary-control').click()
    const unauthorized = await execute(creating)
    expect(unauthorized.status).toBe('401')
    expect(JSON.parse(unauthorized.body)).toMatchObject({ error: 40101 })

    await authorize(page)

    await creating
      .locator('textarea.body-param__text')
      .fill(`{"id": ${id}, "name": "Monstera", "tag": "climber"}`)
    const created = await execute(creating)
    expect(created.status).toBe('200')
    expect(JSON.parse(created.body)).toEqual({ name: 'Monstera', tag: 'climber' })
    expect(created.curl).toContain(`"id": ${id},`)
    if (SCREENSHOT) await takePicture(SCREENSHOT, page, creating)

    const refused = await execute(creating)
    expect(refused.status).toBe('400')
    expect(JSON.parse(refused.body)).toEqual({ error: 40003, message: `id ${id} is already taken` })

    const reading = page.locator('#operations-plants-readPlant')
    await reading.locator('.opblock-summary-control').click()
    await reading.locator('input[placeholder=id]').fill(id)
    const stored = await execute(reading)
    expect(stored.status).toBe('200')
    expect(stored.body.replaceAll(/\s/g, '')).toBe(`{"id":${id},"name":"Monstera","tag":"climber"}`)

    const listing = page.locator('#operations-plants-listPlants')
    await listing.locator('.opblock-summary-control').click()
    await listing.locator('input[placeholder=after]').fill('9007199254740992')
    const listed = await execute(listing)
    expect(listed.status).toBe('200')
    expect(listed.body).toContain(`"id": ${id},`)

    // What the page says of ids is exact as well.
    await page.locator('section.models .models-control').click()
    await page.locator('section.models .json-schema-2020-12').first().waitFor()
    await page
      .locator('section.models .json-schema-2020-12-expand-deep-button')
      .evaluateAll(buttons => buttons.forEach(button => void (button as HTMLElement).click()))
    const models = page.locator('section.models')
    await expect
      .poll(() => models.textContent(), { timeout: 15_000 })
      .toContain('-9223372036854775808 to 9223372036854775807')
    expect(await page.locator('#reference').textContent()).not.toMatch(/922337203685477600|9\.22/)

    expect(complaints).toEqual([])
    expect(requested.length).toBeGreaterThan(8)
    const isElsewhere = (url: string) => !url.startsWith(`${program.url}/`) && !url.startsWith('data:')
    expect(requested.filter(isElsewhere)).toEqual([])
    await page.close()
  })

  test('asks the address that it is opened at, also below a path', async () => {
    await using below = await openService('https://plants.example/garden/store/')
    const page = await browser.newPage()
    const { requested, complaints } = await watch(page)
    await page.goto(`${below.url}/docs`)
    await authorize(page)
    const listing = page.locator('#operations-plants-listPlants')
    await listing.locator('.opblock-summary-control').click()
    expect((await execute(listing)).status).toBe('200')
    expect(complaints).toEqual([])
    expect(requested.filter(url => url.startsWith(`${below.url}/plants`))).toHaveLength(1)
    expect(requested.filter(url => !url.startsWith(`${below.url}/`) && !url.startsWith('data:'))).toEqual([])
    await page.close()
  })

  test('opens on the operations, its examples are plants, and it fits a phone', async () => {
    const page = await browser.newPage({ viewport: { width: 1200, height: 800 } })
    await page.goto(`${program.url}/docs`)
    const last = page.locator('#operations-plants-createPlants')
    await last.waitFor()
    const { y = Number.NaN, height = Number.NaN } = (await last.boundingBox()) ?? {}
    expect(y + height).toBeLessThan(800)

    await page.setViewportSize({ width: 375, height: 740 })
    const widths = () => page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth])
    expect(await widths()).toEqual([375, 375])
    await authorize(page)
    for (const summary of await page.locator('.opblock-summary-control').all()) await summary.click()
    await page.locator('#operations-service-metrics .opblock-body').waitFor()
    const examples = await page.locator('.opblock textarea, .opblock .example').allTextContents()
    expect(examples.join()).toContain('Monstera deliciosa')
    expect(examples.length).toBeGreaterThan(60)
    expect(examples.filter(text => /"string"|: 0\b(?!,\s*"refused")|^string$/.test(text))).toEqual([])
    await execute(page.locator('#operations-plants-createPlant'))
    await page.locator('section.models .models-control').click()
    expect(await widths()).toEqual([375, 375])
    await page.close()
  })

  test('is as dark as the system', async () => {
    const page = await browser.newPage({ colorScheme: 'dark' })
    await page.goto(`${program.url}/docs`)
    const title = page.locator('.info .title')
    await title.waitFor()
    const colors = () =>
      title.evaluate(element => ({
        text: getComputedStyle(element).color,
        background: getComputedStyle(document.body).backgroundColor,
      }))
    const dark = await colors()
    expect(lightness(dark.text)).toBeGreaterThan(0.7)
    expect(lightness(dark.background)).toBeLessThan(0.2)
    await page.emulateMedia({ colorScheme: 'light' })
    await expect.poll(async () => lightness((await colors()).text)).toBeLessThan(0.4)
    await page.close()
  })

  test('keeps the token over a reload, and no other tab has it', async () => {
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(`${program.url}/docs`)
    await page.locator('.opblock').first().waitFor()
    await authorize(page)
    const statusAfter = async (step: (page: Page) => Promise<unknown>, tab: Page) => {
      await step(tab)
      const listing = tab.locator('#operations-plants-listPlants')
      await listing.locator('.opblock-summary-control').click()
      return (await execute(listing)).status
    }
    expect(await statusAfter(tab => tab.reload(), page)).toBe('200')
    expect(await statusAfter(tab => tab.goto(`${program.url}/docs`), await context.newPage())).toBe('401')

    await page.locator('.auth-wrapper .authorize').first().click()
    await page.locator('.modal-ux .auth-btn-wrapper button').first().click()
    expect(await statusAfter(tab => tab.reload(), page)).toBe('401')
    await context.close()
  })
})

test(
  'a browser lets the page of a named origin call, and no other',
  needs('chromium', hasBrowser),
  async () => {
    const site = createServer((_request, response) =>
      response.setHeader('content-type', 'text/html').end('<p>a page</p>'),
    )
    site.listen(0, '127.0.0.1')
    await once(site, 'listening')
    const { port } = site.address() as AddressInfo
    await using program = await startServer({
      environment: { ACCESS_TOKENS: token, CORS_ORIGINS: `http://127.0.0.1:${port}` },
    })
    await using browser = await launchBrowser()
    const page = await browser.newPage()
    const create = (url: string) =>
      page.evaluate(
        async ([url, token]) => {
          try {
            const answer = await fetch(`${url}/plants`, {
              method: 'POST',
              headers: {
                authorization: `Bearer ${token}`,
                'content-type': 'application/json',
                'x-request-id': 'mine',
              },
              body: '{"id": 1, "name": "n"}',
            })
            return [answer.status, await answer.text(), answer.headers.get('x-request-id')]
          } catch (error) {
            return [(error as Error).name]
          }
        },
        [url, token] as const,
      )
    await page.goto(`http://127.0.0.1:${port}/`)
    expect(await create(program.url)).toEqual([200, '{"name":"n"}', 'mine'])
    await page.goto(`http://localhost:${port}/`)
    expect(await create(program.url)).toEqual(['TypeError'])
    site.closeAllConnections()
    site.close()
  },
)
