import type { Server } from '@plant-store/harness'
import {
  type Browser,
  hasBrowser,
  type Locator,
  launchBrowser,
  type Page,
} from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { start, token } from '../ask.ts'

/** The first integer that is no JavaScript number. */
const id = '9007199254740993'

describe('the API reference', needs('chromium', hasBrowser), () => {
  let server: Server
  let browser: Browser
  beforeAll(async () => {
    const BASE_URL = 'https://plants.example/garden/store/'
    server = await start({ BASE_URL })
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await server[Symbol.asyncDispose]()
  })

  async function open(size = { width: 1200, height: 1000 }) {
    const context = await browser.newContext({ viewport: size, colorScheme: 'dark' })
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('pageerror', error => complaints.push(error.message))
    page.on('request', request => {
      const url = request.url()
      if (!(url.startsWith(`${server.url}/`) || url.startsWith('data:'))) {
        complaints.push(`it asks ${url}`)
      }
    })
    page.on('console', message => {
      // Chromium calls every answer that is no success an error of the page.
      const isAnswer = /responded with a status of 4/.test(message.text())
      if (message.type() === 'error' && !isAnswer) {
        complaints.push(message.text())
      }
    })
    await show(page)
    return { page, complaints, [Symbol.asyncDispose]: () => context.close() }
  }

  async function show(page: Page): Promise<void> {
    await page.goto(`${server.url}/docs`)
    await page.locator('.opblock').first().waitFor()
  }

  test('tries out creates, reads and lists, with each digit of an id', async () => {
    await using reference = await open()
    const { page, complaints } = reference
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
    expect(complaints).toEqual([])
  })

  test('no browser runs a downloaded answer', async () => {
    await using reference = await open()
    const { page, complaints } = reference
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
    expect(complaints).toEqual([])
    // The page runs a megabyte of scripts, which is slow by nature on a busy machine.
  }, 120_000)

  test('is as dark as the system, and as wide as a phone', async () => {
    await using reference = await open({ width: 375, height: 740 })
    const { page } = reference
    const titleColor = () =>
      page.evaluate<string>(
        "getComputedStyle(document.querySelector('.info .title')).color",
      )
    const inDark = await titleColor()

    await unfold(page, 'plants-createPlant')
    await page.locator('section.models .models-control').click()
    const width = await page.evaluate('document.documentElement.scrollWidth')
    await page.emulateMedia({ colorScheme: 'light' })

    expect(width).toBe(375)
    await expect.poll(titleColor).not.toBe(inDark)
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
    await show(tab)
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
  const textOf = async (part: Locator) => `${await part.first().textContent()}`
  const status = await textOf(row.locator('.response-col_status'))
  return {
    status: status.trim().slice(0, 3),
    body: await textOf(row.locator('.highlight-code pre')),
    curl: await textOf(operation.locator('.curl')),
  }
}

async function authorize(page: Page): Promise<void> {
  await page.locator('.auth-wrapper .authorize').first().click()
  await page.locator('.modal-ux input').fill(token)
  await page.locator('.modal-ux button[type=submit]').click()
  await page.locator('.modal-ux .btn-done').click()
}
