import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startServer } from '@plant-store/harness'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { create, token } from '../ask.ts'

// `pnpm dev` of CONTRIBUTING.md serves like this.
test('the server runs from its sources, and reads nothing from a build', async () => {
  const folder = temporaryFolder()
  const preload = join(folder, 'refuse-builds.mjs')
  writeFileSync(
    preload,
    `import { registerHooks } from 'node:module'
    registerHooks({
      load(url, context, load) {
        if (/(packages|apps)\\/[^/]+\\/dist\\//.test(url)) {
          throw new Error(url + ' is written by a build')
        }
        return load(url, context)
      },
    })`,
  )
  const main = join(import.meta.dirname, '../../src/main.ts')
  await using server = await startServer({
    command: [process.execPath, '--conditions=plant-store-source', main],
    environment: { ACCESS_TOKENS: token },
    folder,
    preload,
  })

  const { status } = await create(server, 1)

  expect(status).toBe(200)
  expect(await server.end()).toBe(0)
  expect(readdirSync(folder).sort()).toEqual(['data', 'refuse-builds.mjs'])
})
