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

describe('the API reference', needs('chromium', hasBrowser), () => {
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

  /** Opens it. Returns the page, what it asks for and what it complains about. */
  async function open({ url } = program, size = { width: 1200, height: 1000 }) {
    const context = await browser.newContext({ viewport: size, colorScheme: 'dark' })
    const page = await context.newPage()
    const requested: string[] = []
    const complaints: string[] = []
    page.on('request', request => requested.push(request.url()))
    page.on('pageerror', error => complaints.push(error.message))
    page.on('console', message => {
      // Chromium calls every answer that is no success an error of the page.
      const isAnswer = /responded with a status of 4/.test(message.text())
      if (message.type() === 'error' && !isAnswer) {
        complaints.push(message.text())
      }
    })
    await page.goto(`${url}/docs`)
    await page.locator('.opblock').first().waitFor()
    const expectQuiet = () => {
      const foreign = requested.filter(each => !each.startsWith(`${url}/`))
      expect(complaints).toEqual([])
      expect(foreign.filter(each => !each.startsWith('data:'))).toEqual([])
    }
    return { page, requested, expectQuiet, [Symbol.asyncDispose]: () => context.close() }
  }

  test('tries out creates, reads and lists, with each digit of an id', async () => {
    await using reference = await open()
    const { page, expectQuiet } = reference
    const creating = await unfold(page, 'plants-createPlant')
    const unauthorized = await execute(creating)
    await authorize(page)
    const body = `{"id": ${id}, "name": "Monstera", "tag": "climber"}`
    await creating.locator('textarea.body-param__text').fill(body)

    const created = await execute(creating)
    const reading = await unfold(page, 'plants-readPlant')
    await reading.locator('input[placeholder=id]').fill(id)
    const read = await execute(reading)
    const listing = await unfold(page, 'plants-listPlants')
    await listing.locator('input[placeholder=after]').fill('9007199254740992')
    const listed = await execute(listing)
    const batch = await execute(await unfold(page, 'plants-createPlants'))

    expect(unauthorized.status).toBe('401')
    expect(created.curl).toContain(`"id": ${id},`)
    for (const answer of [created, read, listed, batch]) {
      expect(answer.status, answer.body).toBe('200')
    }
    for (const { body } of [read, listed]) {
      expect(body).toContain(`"id": ${id},`)
    }
    expect(JSON.parse(batch.body)).toMatchObject({ created: 2 })
    expectQuiet()
  })

  test('no browser runs a downloaded answer', async () => {
    await using reference = await open()
    const { page, expectQuiet } = reference
    for (const [name, contentType, body, file] of [
      ['plants-readPlant', 'application/json', '{"name":"<script>"}', /\.json$/],
      ['service-metrics', 'text/plain', '<script>', /\.txt$/],
    ] as const) {
      await page.route(/\/(plants\/\d+|metrics)$/, route =>
        route.fulfill({ contentType, body }),
      )
      const operation = await unfold(page, name)
      await execute(operation)
      const downloading = page.waitForEvent('download')

      await operation.getByRole('button', { name: 'Download' }).click()

      const download = await downloading
      expect(download.suggestedFilename(), name).toMatch(file)
    }
    expectQuiet()
    // The page runs a megabyte of scripts, which is slow by nature on a busy machine.
  }, 120_000)

  test('asks the address that it is opened at, also below a path', async () => {
    await using below = await start({ BASE_URL: 'https://plants.example/garden/store/' })
    await using reference = await open(below)
    const { page, requested, expectQuiet } = reference
    await authorize(page)

    const { status } = await execute(await unfold(page, 'plants-listPlants'))

    expect(status).toBe('200')
    expect(requested.filter(url => url.startsWith(`${below.url}/plants`))).toHaveLength(1)
    expectQuiet()
  })

  test('is as dark as the system, and as wide as a phone', async () => {
    await using reference = await open(program, { width: 375, height: 740 })
    const { page } = reference
    const titleLightness = async () =>
      lightness(
        await page.evaluate<string>(
          "getComputedStyle(document.querySelector('.info .title')).color",
        ),
      )
    const inDark = await titleLightness()

    await unfold(page, 'plants-createPlant')
    await page.locator('section.models .models-control').click()
    const width = await page.evaluate('document.documentElement.scrollWidth')
    await page.emulateMedia({ colorScheme: 'light' })

    expect(width).toBe(375)
    expect(inDark).toBeGreaterThan(0.7)
    await expect.poll(titleLightness).toBeLessThan(0.4)
  })

  test('keeps the token over a reload, and no other tab has it', async () => {
    await using reference = await open()
    const { page } = reference
    const status = async (tab: Page) =>
      (await execute(await unfold(tab, 'plants-listPlants'))).status
    await authorize(page)

    await page.reload()
    const kept = await status(page)
    const tab = await page.context().newPage()
    await tab.goto(`${program.url}/docs`)
    const elsewhere = await status(tab)
    await page.locator('.auth-wrapper .authorize').first().click()
    await page.locator('.modal-ux .auth-btn-wrapper button').first().click()
    await page.reload()
    const loggedOut = await status(page)

    expect([kept, elsewhere, loggedOut]).toEqual(['200', '401', '401'])
  })
})

/** Opens an operation of the page. */
async function unfold(page: Page, operation: string): Promise<Locator> {
  const block = page.locator(`#operations-${operation}`)
  await block.locator('.opblock-summary-control').click()
  return block
}

/** Sends what is filled in, and reads the answer that the page shows. */
async function execute(operation: Locator) {
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
