import { existsSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { hasBrowser, launchBrowser } from '@plant-store/harness/browser'
import { bunProgram, fetchBun } from '@plant-store/harness/bun'
import { needs } from '@plant-store/harness/vitest'
import { build } from 'esbuild'
import { expect, inject, test } from 'vitest'
import { run } from '../src/run.ts'

const installed = inject('installed')

/** Takes a plant through the domain's rules, and through a store that the client reaches by the fetch given. */
const trial = `
import { createPlantStore, parsePlant, plantIdMax } from '@plant-store/domain'
import { createPlantClient } from '@plant-store/client'

export async function tryOut() {
  const plant = parsePlant({ id: plantIdMax, name: 'Monstera' })
  let refused
  try { parsePlant({ id: 1, name: '\\ud800' }) } catch (error) { refused = error.message }
  const fetch = async () => new Response('[{"id":9007199254740993,"name":"Fern"}]')
  const client = createPlantClient({ baseUrl: 'http://store.example/garden', token: 't', fetch })
  const { plants } = await client.list()
  const store = createPlantStore({ plants: { insert: async () => 'id-taken' } })
  const taken = await store.create(plant).catch(error => error.code)
  return [String(plant.id), refused, String(plants[0].id), taken]
}
`
const outcome = [
  '9223372036854775807',
  'id must be an integer from -9223372036854775808 to 9223372036854775807; name must be Unicode text without lone surrogates',
  '9007199254740993',
  'id-taken',
]

const folder = await mkdtemp(join(installed.folder, 'trial-'))
await writeFile(join(folder, 'trial.js'), trial)
await writeFile(
  join(folder, 'print.js'),
  "console.log(JSON.stringify(await (await import('./trial.js')).tryOut()))",
)

test('domain and client run on Node', async () => {
  expect(JSON.parse(await run(process.execPath, ['print.js'], folder))).toEqual(outcome)
})

// CI tests everything; others have Bun once `pnpm bench` has fetched it.
const { CI } = process.env
if (CI) fetchBun()
const bun = needs('Bun (`pnpm bench` fetches it)', existsSync(bunProgram))

test('domain and client run on Bun', bun, async () => {
  expect(JSON.parse(await run(bunProgram, ['print.js'], folder))).toEqual(outcome)
})

test('the client keeps its promises on Bun', bun, async () => {
  await writeFile(
    join(folder, 'refused.js'),
    `
import { createPlantClient } from '@plant-store/client'
const client = createPlantClient({ baseUrl: 'http://127.0.0.1:1', token: 't', attemptsMax: 2 })
const failure = await client.create({ id: 1n, name: '' }).catch(error => error)
console.log(failure.reason, failure.mayHaveChanged)
`,
  )
  expect(await run(bunProgram, ['refused.js'], folder)).toBe('connection-failed false\n')
})

test('domain and client, minified for a browser, are small and need nothing of Node', async () => {
  for (const [name, bytesMax] of [
    ['domain', 4_500],
    ['client', 12_500],
  ] as const) {
    const code = await bundle(`export * from '@plant-store/${name}'`)
    console.log(`${name}: ${code.length} bytes minified, ${gzipSync(code).length} compressed`)
    expect(code.length).toBeLessThan(bytesMax)
  }
})

test('what is not used of the domain is not bundled', async () => {
  const code = await bundle("export { parsePlantId } from '@plant-store/domain'")
  expect(code.length).toBeLessThan(1_000)
  expect(code).not.toContain('plant-not-found')
})

test('domain and client run in a browser', needs('chromium', hasBrowser), async () => {
  const code = await bundle("import { tryOut } from './trial.js'; globalThis.tryOut = tryOut")
  await using browser = await launchBrowser()
  const page = await browser.newPage()
  await page.addScriptTag({ content: code, type: 'module' })
  await page.waitForFunction('globalThis.tryOut !== undefined')
  expect(await page.evaluate('tryOut()')).toEqual(outcome)
})

async function bundle(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: folder },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    write: false,
    logLevel: 'silent',
  })
  return outputFiles[0]?.text as string
}
