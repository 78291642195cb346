import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Plant, parsePlant, plantIdMax } from '@plant-store/domain'
import { openArchive, openStorage } from '@plant-store/persistence'
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

  test('lets a server write while plants are staged', async () => {
    await using storage = await openStorage({ url })
    await using archive = await openArchive(url)
    await using staged = await archive.stage('keep')
    await staged.add(many(1_000))
    expect(await storage.plants.insert(parsePlant({ id: -1n, name: 'meanwhile' }))).toBe('inserted')
    expect(await staged.keep()).toBe('kept')
  })
})
