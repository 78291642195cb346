import { join } from 'node:path'
import { launchBrowser } from '@plant-store/harness/browser'
import { startStore } from './store.ts'

/** Takes the two pictures of README.md. */

const docs = join(import.meta.dirname, '../../../docs')

const plants = [
  [-(2n ** 63n), 'Ginkgo biloba', 'tree'],
  [-42n, 'Hedera helix', 'climber'],
  [0n, 'Welwitschia mirabilis'],
  [1n, 'Monstera deliciosa', 'climber'],
  [2n, 'Ficus lyrata', 'tree'],
  [3n, 'Aloe vera', 'succulent'],
  [5n, 'Сирень обыкновенная', 'shrub'],
  [8n, 'Salvia rosmarinus\nsouth wall, two pots', 'herb'],
  [34n, 'Dionaea muscipula', ''],
  [9007199254740993n, 'Nepenthes rajah', 'climber'],
  [2n ** 63n - 1n, 'Sequoiadendron giganteum', 'tree'],
] as const

await using store = await startStore()
await using browser = await launchBrowser()
await store.fill(plants)
for (const colorScheme of ['light', 'dark'] as const) {
  const viewport = { width: 960, height: 700 }
  const page = await browser.newPage({ colorScheme, viewport, deviceScaleFactor: 1.5 })
  await page.goto(store.url)
  await page.getByLabel('Access token').fill(store.token())
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('no more').waitFor()
  await page.getByRole('heading', { name: 'Plant Store' }).click()
  await page.screenshot({ path: join(docs, `page-${colorScheme}.png`) })
}
