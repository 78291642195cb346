import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createGate, hashToken, mintToken } from '@plant-store/access'
import { createPlantStore, isDomainError, parsePlantId } from '@plant-store/domain'
import { plantRepositoryContract } from '@plant-store/domain/testing'
import { plantRoutes } from '@plant-store/http'
import { openStorage } from '@plant-store/persistence'
import fastify from 'fastify'
import { openNodeSqlite } from './node-sqlite.ts'

let folder: string
let files = 0
const newFile = () => join(folder, `${files++}.db`)
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nursery-node-sqlite-'))
})
after(() => rm(folder, { recursive: true }))

describe("a store on Node's own SQLite keeps the contract", () => {
  for (const { name, run } of plantRepositoryContract) {
    test(`plants: ${name}`, async () => {
      await using storage = await openNodeSqlite(newFile())
      await run(storage.plants)
    })
  }
})

test('what was kept is stored after a kill, and for the store of the packages too', async () => {
  const file = newFile()
  const writer = spawn(process.execPath, [
    fileURLToPath(import.meta.resolve('./node-sqlite-writer.ts')),
    file,
  ])
  const kept: string[] = []
  for await (const line of createInterface(writer.stdout)) {
    if (kept.push(line) === 200) writer.kill('SIGKILL')
  }
  if (writer.exitCode === null && writer.signalCode === null) await once(writer, 'exit')
  assert.equal(writer.signalCode, 'SIGKILL')
  assert.ok(kept.length >= 200)
  for (const open of [openNodeSqlite, (path: string) => openStorage({ url: `file:${path}` })]) {
    await using storage = await open(file)
    for (const id of kept) assert.ok(await storage.plants.find(parsePlantId(BigInt(id))), id)
  }
})

test('the tables of another program are left alone', async () => {
  const file = newFile()
  const other = new DatabaseSync(file)
  other.exec('create table orders (id integer)')
  await assert.rejects(openNodeSqlite(file), /tables of another program/)
  assert.deepEqual(
    other
      .prepare('select name from sqlite_schema')
      .all()
      .map(({ name }) => name),
    ['orders'],
  )
  other.close()
})

test('what the database fails with is an outage, which is reported', async () => {
  const file = newFile()
  await using storage = await openNodeSqlite(file)
  const other = new DatabaseSync(file)
  other.exec('drop table access_tokens')
  await assert.rejects(storage.check(), error => isDomainError(error) && error.code === 'store-unavailable')
  other.close()
})

test('a service on it answers as the README of the project shows', async () => {
  await using storage = await openNodeSqlite(newFile())
  const token = mintToken()
  const flora = { name: 'flora', scopes: ['plants:write', 'plants:read'], createdAt: new Date() } as const
  await storage.tokens.insert(flora, hashToken(token))
  const app = fastify()
  const store = createPlantStore({ plants: storage.plants })
  app.register(plantRoutes, { store, gate: createGate({ tokens: storage.tokens }) })
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  const authorization = `Bearer ${token}`
  const create = async (body: string) => {
    const headers = { authorization, 'content-type': 'application/json' }
    const answer = await fetch(`${origin}/plants`, { method: 'POST', headers, body })
    return [answer.status, await answer.text()]
  }
  const read = async (path: string) => {
    const answer = await fetch(`${origin}${path}`, { headers: { authorization } })
    return [answer.status, answer.headers.get('link'), await answer.text()]
  }
  try {
    assert.deepEqual(
      await create('{"id": 9007199254740993, "name": "Monstera deliciosa", "tag": "climber"}'),
      [200, '{"name":"Monstera deliciosa","tag":"climber"}'],
    )
    assert.deepEqual(await read('/plants/9007199254740993'), [
      200,
      null,
      '{"id":9007199254740993,"name":"Monstera deliciosa","tag":"climber"}',
    ])
    assert.deepEqual(await create('{"id": -1, "name": "Ginkgo 🌳"}'), [200, '{"name":"Ginkgo 🌳"}'])
    assert.deepEqual(await read('/plants?limit=1'), [
      200,
      '</plants?limit=1&after=-1>; rel="next"',
      '[{"id":-1,"name":"Ginkgo 🌳"}]',
    ])
    const [status, text] = await create('{"id": "7", "tag": null}')
    assert.deepEqual([status, JSON.parse(`${text}`).error], [400, 40002])
    assert.deepEqual(await create('{"id": -1, "name": "Another"}'), [
      400,
      '{"error":40003,"message":"id -1 is already taken"}',
    ])
  } finally {
    await app.close()
  }
})
