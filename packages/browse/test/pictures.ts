import { join } from 'node:path'
import { type Browser, launchBrowser, type Page } from '@plant-store/harness/browser'
import { startStore } from './store.ts'

/**
 * Takes the two pictures of README.md into docs/. With a folder as its argument, it takes
 * all pictures into that, to be looked at: list, record and conflict, light, dark and on
 * a phone.
 */

const [folder] = process.argv.slice(2)
const docs = join(import.meta.dirname, '../../../docs')

const plants: readonly { id: bigint; name: string; tag?: string }[] = [
  { id: -(2n ** 63n), name: 'Ginkgo biloba', tag: 'tree' },
  { id: -42n, name: 'Hedera helix', tag: 'climber' },
  { id: 0n, name: 'Welwitschia mirabilis' },
  { id: 1n, name: 'Monstera deliciosa', tag: 'climber' },
  { id: 2n, name: 'Ficus lyrata', tag: 'tree' },
  { id: 3n, name: 'Aloe vera', tag: 'succulent' },
  { id: 5n, name: 'Сирень обыкновенная', tag: 'shrub' },
  { id: 8n, name: 'Salvia rosmarinus\nsouth wall, two pots', tag: 'herb' },
  { id: 34n, name: 'Dionaea muscipula', tag: '' },
  { id: 9007199254740993n, name: 'Nepenthes rajah', tag: 'climber' },
  { id: 2n ** 63n - 1n, name: 'Sequoiadendron giganteum', tag: 'tree' },
]

const views = [
  { name: 'light', colorScheme: 'light', width: 960 },
  { name: 'dark', colorScheme: 'dark', width: 960 },
  { name: 'phone', colorScheme: 'light', width: 375 },
] as const

await using store = await startStore()
await using browser = await launchBrowser()
for (const view of folder === undefined ? views.slice(0, 2) : views) {
  await store.fill(plants)
  await takePictures(browser, view)
}

async function takePictures(
  browser: Browser,
  { name, colorScheme, width }: (typeof views)[number],
): Promise<void> {
  const viewport = { width, height: 700 }
  const page = await browser.newPage({ colorScheme, viewport, deviceScaleFactor: 1.5 })
  const take = (state: string) =>
    page.screenshot({ path: join(folder ?? docs, `page${state}-${name}.png`) })
  await page.goto(store.url)
  await page.getByLabel('Access token').fill(store.token())
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('no more').waitFor()
  await page.getByRole('heading', { name: 'Plant Store' }).click()
  await take('')
  if (folder !== undefined) {
    await takeDialogs(page, take)
  }
  await page.close()
}

async function takeDialogs(
  page: Page,
  take: (state: string) => Promise<unknown>,
): Promise<void> {
  await page.getByRole('link', { name: 'Monstera deliciosa' }).click()
  await page.getByLabel('name', { exact: true }).last().fill('Monstera, north window')
  await take('-record')
  await store.fill([{ id: 1n, name: 'Swiss cheese plant', tag: 'climber' }])
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('button', { name: 'Save mine over it' }).waitFor()
  await take('-conflict')
}
