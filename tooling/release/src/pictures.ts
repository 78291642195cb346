import { join } from 'node:path'
import { createPlantClient } from '@plant-store/client'
import { startServer } from '@plant-store/harness'
import { launchBrowser } from '@plant-store/harness/browser'

/** Takes the README's pictures of the page, light and dark, into docs/. */

const token = 'plantstore_for-the-pictures'
const docs = join(import.meta.dirname, '../../../docs')

type PlantParts = readonly [id: bigint, name: string, tag?: string]

const plants: readonly PlantParts[] = [
  [-(2n ** 63n), 'Ginkgo biloba', 'tree'],
  [-42n, 'Hedera helix', 'climber'],
  [0n, 'Welwitschia mirabilis'],
  [1n, 'Monstera deliciosa', 'climber'],
  [2n, 'Ficus lyrata', 'tree'],
  [3n, 'Aloe vera', 'succulent'],
  [5n, 'Сирень обыкновенная', 'shrub'],
  [8n, 'Salvia rosmarinus\nsouth wall, two pots', 'herb'],
  [13n, 'Lavandula angustifolia', 'herb'],
  [21n, 'Echeveria elegans', 'succulent'],
  [34n, 'Dionaea muscipula', ''],
  [9007199254740993n, 'Nepenthes rajah', 'climber'],
  [2n ** 63n - 1n, 'Sequoiadendron giganteum', 'tree'],
]

await using server = await startServer({ environment: { ACCESS_TOKENS: token } })
const client = createPlantClient({ baseUrl: server.url, token })
const shown = plants.map(([id, name, tag]) => ({ id, name, tag }))
await client.createMany(shown)

await using browser = await launchBrowser()
for (const colorScheme of ['light', 'dark'] as const) {
  const page = await browser.newPage({
    colorScheme,
    viewport: { width: 960, height: 700 },
    deviceScaleFactor: 1.5,
  })
  await page.goto(server.url)
  await page.getByLabel('Access token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('no more').waitFor()
  await page.getByRole('heading', { name: 'Plant Store' }).click()
  await page.screenshot({ path: join(docs, `page-${colorScheme}.png`) })
  await page.close()
}
