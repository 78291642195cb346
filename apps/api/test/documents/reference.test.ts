import type { Server } from '@plant-store/harness'
import {
  type Browser,
  hasBrowser,
  type Locator,
  launchBrowser,
  type Page,
} from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { start, token } from '../ask.ts'

/** The first integer that is no JavaScript number. */
const id = '9007199254740993'

// They share a page, as its megabyte of scripts is what takes their time.
describe('the API reference', needs('chromium', hasBrowser), () => {
  let server: Server
  let browser: Browser
  let page: Page
  let complaints: string[]
  beforeAll(async () => {
    server = await start({ BASE_URL: 'https://plants.example/garden/store/' })
    browser = await launchBrowser()
    const viewport = { width: 375, height: 740 }
    page = await browser.newPage({ viewport, colorScheme: 'dark' })
    complaints = complaintsOf(page, server.url)
    await page.goto(`${server.url}/docs`)
  })
  afterAll(async () => {
    await browser.close()
    await server[Symbol.asyncDispose]()
  })
  afterEach(() => expect(complaints.splice(0)).toEqual([]))

  test('is as dark as the system, and as wide as a phone', async () => {
    await unfold(page, 'plants-createPlant')
    const inDark = await titleColor(page)

    await page.locator('section.models .models-control').click()
    const width = await page.evaluate('document.documentElement.scrollWidth')
    await page.emulateMedia({ colorScheme: 'light' })

    expect(width).toBe(375)
    await expect.poll(() => titleColor(page)).not.toBe(inDark)
  })

  test('keeps the token over a reload, and for no other tab', async () => {
    const listing = () => unfold(page, 'plants-listPlants')
    await authorize(page)

    await page.reload()
    const { status: signedIn } = await execute(await listing())
    const whileSignedIn = await keptBy(page)
    await page.locator('.auth-wrapper .authorize').first().click()
    await page.locator('.modal-ux .auth-btn-wrapper button').first().click()
    await page.locator('.modal-ux .btn-done').click()
    const { status: signedOut } = await execute(await listing())

    expect([signedIn, signedOut]).toEqual(['200', '401'])
    // Each tab has a storage of its own for its session.
    expect([whileSignedIn, await keptBy(page)]).toEqual([
      [token, ''],
      ['', ''],
    ])
    expect(await page.context().cookies()).toEqual([])
  })

  test('tries out creates, reads and lists, with each digit of an id', async () => {
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
    expect([created, read, listed, batch].map(({ status }) => status)).toEqual(
      Array(4).fill('200'),
    )
    expect(read.body).toContain(`"id": ${id},`)
    expect(listed.body).toContain(`"id": ${id},`)
    expect(JSON.parse(batch.body)).toMatchObject({ created: 2 })
  })

  test.each([
    ['plants-readPlant', 'application/json', '{"name":"<script>"}', /\.json$/],
    ['service-metrics', 'text/plain', '<script>', /\.txt$/],
  ])('no browser runs the downloaded answer of %s', async (...row) => {
    const [name, contentType, body, file] = row
    await page.route(/\/(plants\/\d+|metrics)$/, route =>
      route.fulfill({ contentType, body }),
    )
    const operation = await unfold(page, name)
    await execute(operation)
    const downloading = page.waitForEvent('download')

    await operation.getByRole('button', { name: 'Download' }).click()

    expect((await downloading).suggestedFilename()).toMatch(file)
    await page.unrouteAll()
  })
})

/** Collects errors of the page, and its requests to other servers. */
function complaintsOf(page: Page, url: string): string[] {
  const complaints: string[] = []
  page.on('pageerror', error => complaints.push(error.message))
  page.on('request', request => {
    const asked = request.url()
    if (!(asked.startsWith(`${url}/`) || asked.startsWith('data:'))) {
      complaints.push(`it asks ${asked}`)
    }
  })
  page.on('console', message => {
    // Chromium calls every answer that is no success an error of the page.
    const isAnswer = /responded with a status of 4/.test(message.text())
    if (message.type() === 'error' && !isAnswer) {
      complaints.push(message.text())
    }
  })
  return complaints
}

/** Returns the texts that the page keeps for its tab, and those for every tab. */
const keptBy = (page: Page) =>
  page.evaluate<string[]>(
    '[sessionStorage, localStorage].map(kept => Object.values(kept).join())',
  )

const titleColor = (page: Page) =>
  page.evaluate<string>("getComputedStyle(document.querySelector('.info .title')).color")

/** Opens an operation of the page, unless it is open. */
async function unfold(page: Page, operation: string): Promise<Locator> {
  const block = page.locator(`#operations-${operation}`)
  await block.waitFor()
  if (!(await block.locator('.execute').isVisible())) {
    await block.locator('.opblock-summary-control').click()
  }
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
  const textOf = async (part: Locator) => `${await part.first().textContent()}`
  const status = await textOf(row.locator('.response-col_status'))
  return {
    status: status.trim().slice(0, 3),
    body: await textOf(row.locator('.highlight-code pre')),
    curl: await textOf(operation.locator('.curl')),
  }
}

async function authorize(page: Page) {
  await page.locator('.auth-wrapper .authorize').first().click()
  await page.locator('.modal-ux input').fill(token)
  await page.locator('.modal-ux button[type=submit]').click()
  await page.locator('.modal-ux .btn-done').click()
}
