import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  contractCases,
  createClient,
  createRecorder,
  type Need,
  type StoreTokens,
} from '@plant-store/contract'
import { launch, until } from '@plant-store/harness'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { versionOf } from './install.ts'

const { folder: oldestFolder, newestFolder } = inject('installed')

/** What a service of others says once it listens (test/garden/garden.ts). */
interface Garden {
  readonly url: string
  /** Of its own tokens, for its own routes. */
  readonly own: string
  readonly tokens: StoreTokens
}

/** What is left to a service that mounts the routes, by what a case needs. */
const leftToTheService: Readonly<Record<Need, string>> = {
  server: 'it reads the header section and broken HTTP',
  router: 'its router says what is at a path',
  'service-pages': 'pages about the service are its own',
}

describe.each([
  ['fastify-oldest', oldestFolder],
  ['fastify', newestFolder],
])('in a service of others with %s', (name, folder) => {
  let program: ReturnType<typeof launch>
  let garden: Garden
  let client: ReturnType<typeof createClient>
  let recorder: ReturnType<typeof createRecorder>

  beforeAll(async () => {
    cpSync(join(import.meta.dirname, 'garden/garden.ts'), join(folder, 'garden.ts'))
    program = launch([process.execPath, 'garden.ts'], { folder })
    await until('it listens', () => {
      program.assertRunning()
      return program.output().endsWith('\n')
    })
    garden = JSON.parse(program.output())
    recorder = createRecorder(await (await fetch(`${garden.url}/description`)).text())
    client = createClient({ url: `${garden.url}/garden`, tokens: garden.tokens }, recorder)
  })
  afterAll(async () => {
    client?.close()
    await program?.[Symbol.asyncDispose]()
  })

  test('there is one Fastify, and it is the one that was asked for', async () => {
    const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'))
    const copies = Object.entries<{ version: string }>(lock.packages).filter(([path]) =>
      /\/fastify$/.test(path),
    )
    expect(copies.map(([path, { version }]) => [path, version])).toEqual([
      ['node_modules/fastify', versionOf(name)],
    ])
  })

  test('its own routes, tokens, shapes and properties are as they were', async () => {
    const ask = async (path: string, authorization = ''): Promise<[number, object]> => {
      const answer = await fetch(`${garden.url}${path}`, { headers: { authorization } })
      return [answer.status, (await answer.json()) as object]
    }
    expect(await ask('/nowhere')).toEqual([404, { wrapped: { garden: 'nothing grows here' } }])
    expect(await ask('/broken')).toEqual([418, { garden: { wrapped: { garden: 'Error: the hose' } } }])
    expect(await ask('/own', `Bearer ${garden.own}`)).toEqual([
      200,
      { garden: { wrapped: { own: 'gardener' } } },
    ])
    expect((await ask('/own', `Bearer ${garden.tokens.full}`))[0]).toBe(418)
    const number = 40402
    const wrapped = { garden: 'there is no plant with id 7', number }
    expect(await ask('/seven')).toEqual([404, { garden: { wrapped } }])
    expect(Object.keys((await ask('/swagger'))[1])).toContain('/garden/plants/{id}')
  })

  for (const { clause, name, needs, run } of contractCases) {
    const title = `${clause}: ${name}`
    if (needs === undefined) test(title, () => run(client))
    else
      test(`${title} (left to the service: ${leftToTheService[needs]})`, async () => {
        // With connections of its own, which the service may end.
        const other = createClient(client.store, recorder)
        await expect(run(other)).rejects.toThrow()
        other.close()
      })
  }

  test('most cases hold, and its hooks saw whom our gate admitted', async () => {
    const held = contractCases.filter(({ needs }) => needs === undefined)
    expect(held.length).toBeGreaterThan(170)
    expect(recorder.checked()).toBeGreaterThan(1000)
    const admitted = await (await fetch(`${garden.url}/admitted`)).json()
    expect(admitted).toEqual(expect.arrayContaining(['full', 'read only', 'write only', null]))
    console.log(
      `${held.length} of ${contractCases.length} cases hold in a service on Fastify ${versionOf(name)}`,
    )
  })
})
