import { cp, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { contractCases, createClient, createRecorder, type StoreTokens } from '@plant-store/contract'
import { launch, until } from '@plant-store/harness'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { install } from '../src/install.ts'

const { folder: nursery, packages } = inject('installed')
const require = createRequire(import.meta.url)
const versionOf = (name: string) => require(`${name}/package.json`).version as string

/** What a service of others says once it listens (test/garden/garden.ts). */
interface Garden {
  readonly url: string
  /** Of its own tokens, for its own routes. */
  readonly own: string
  readonly tokens: StoreTokens
}

/** The cases that no host can pass, and why. */
const left = new Map<string, string>()

describe.each(['fastify-oldest', 'fastify'])('in a service of others with %s', name => {
  const folder = join(nursery, '..', `garden-${name}`)
  let program: ReturnType<typeof launch>
  let garden: Garden
  let client: ReturnType<typeof createClient>
  let recorder: ReturnType<typeof createRecorder>

  beforeAll(async () => {
    await cp(join(import.meta.dirname, 'garden'), folder, { recursive: true })
    const mounted = ['@plant-store/access', '@plant-store/domain', '@plant-store/http', '@plant-store/json']
    await install(
      folder,
      packages.filter(each => mounted.includes(each.name)),
      {
        fastify: versionOf(name),
        '@fastify/jwt': versionOf('@fastify/jwt'),
        '@fastify/swagger': versionOf('@fastify/swagger'),
      },
    )
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
    const lock = JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8'))
    const copies = Object.entries<{ version: string }>(lock.packages).filter(([path]) =>
      /\/fastify$/.test(path),
    )
    expect(copies.map(([path, { version }]) => [path, version])).toEqual([
      ['node_modules/fastify', versionOf(name)],
    ])
  })

  for (const { clause, name, run } of contractCases) {
    const reason = left.get(name)
    if (reason === undefined) test(`${clause}: ${name}`, () => run(client))
    else
      test(`${clause}: ${name}, which is left to the service, as ${reason}`, () =>
        expect(run(client)).rejects.toThrow())
  }
})
