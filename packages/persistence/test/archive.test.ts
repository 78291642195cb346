import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Plant, parsePlant, plantIdMax } from '@plant-store/domain'
import { openArchive, openSnapshot, openStorage } from '@plant-store/persistence'
import { plantArchiveContract } from '@plant-store/persistence/testing'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

let folder: string
let url: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
  url = `file:${folder}/store.db`
})
afterEach(() => rmSync(folder, { recursive: true }))

const many = (count: number) =>
  Array.from({ length: count }, (_, n) => parsePlant({ id: BigInt(n), name: 'p' }))

describe('an archive beside a server, on SQLite', () => {
  for (const { name, run } of plantArchiveContract) {
    test(name, async () => {
      await using storage = await openStorage({ url })
      await using archive = await openArchive(url)
      await run({ archive, plants: storage.plants })
    })
  }

  test('leaves one file behind when everybody is done', async () => {
    {
      await using archive = await openArchive(url)
      await using _snapshot = await archive.snapshot()
      await archive.load(many(10), 'keep')
      await using staged = await archive.stage('keep')
      await staged.add(many(20))
    }
    expect(readdirSync(folder)).toEqual(['store.db'])
  })

  test('reads to the greatest id, also where a page ends with it', async () => {
    await using archive = await openArchive(url)
    const plants = Array.from({ length: 1_000 }, (_, n) =>
      parsePlant({ id: plantIdMax - BigInt(999 - n), name: 'p' }),
    )
    await archive.load(plants, 'keep')
    await using snapshot = await archive.snapshot()
    const read: Plant[] = []
    for await (const some of snapshot.plants()) read.push(...some)
    expect(read).toEqual(plants)
  })

  test('keeps nothing of a call that fails, and says why', async () => {
    await using archive = await openArchive(url)
    await archive.load(many(10), 'keep')
    const db = new Database(`${folder}/store.db`)
    db.exec(
      `create trigger full before insert on plants when new.id = 15 begin select raise(abort, 'no more'); end`,
    )
    db.close()
    const failure = { code: 'store-unavailable', message: 'the store could not keep the plants: no more' }
    await expect(archive.load(many(20), 'keep')).rejects.toMatchObject(failure)
    await using staged = await archive.stage('keep')
    await staged.add(many(20))
    await expect(staged.keep()).rejects.toMatchObject(failure)
    await using snapshot = await archive.snapshot()
    expect(snapshot.count).toBe(10)
  })

  test('says why it cannot stage or be read once a folder is in its place', async () => {
    await using archive = await openArchive(url)
    const staged = await archive.stage('keep')
    await staged[Symbol.asyncDispose]()
    const closed = {
      code: 'store-unavailable',
      message: expect.stringMatching(/^the store could not stage the plants: ./),
    }
    await expect(staged.add(many(1))).rejects.toMatchObject(closed)
    rmSync(`${folder}/store.db`)
    mkdirSync(`${folder}/store.db`)
    const failure = (failed: string) => ({
      code: 'store-unavailable',
      message: `the store ${failed}: the file cannot be opened`,
    })
    await expect(archive.stage('keep')).rejects.toMatchObject(failure('could not stage the plants'))
    await expect(archive.snapshot()).rejects.toMatchObject(failure('cannot be read'))
  })

  test('is not read from a database that is empty, which stays so', async () => {
    const database = new Database(`${folder}/store.db`)
    database.pragma('user_version = 1')
    database.close()
    const before = readFileSync(`${folder}/store.db`)
    await expect(openSnapshot(url)).rejects.toThrow(
      /cannot be opened: the store cannot be read: it is empty$/,
    )
    expect(readFileSync(`${folder}/store.db`).equals(before)).toBe(true)
  })

  test('lets a server write while plants are staged', async () => {
    await using storage = await openStorage({ url })
    await using archive = await openArchive(url)
    await using staged = await archive.stage('keep')
    await staged.add(many(1_000))
    expect(await storage.plants.insert(parsePlant({ id: -1n, name: 'meanwhile' }))).toBe('inserted')
    expect(await staged.keep()).toBe('kept')
  })
})
