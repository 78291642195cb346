import { createTestDatabase } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { plant, temporaryFolder } from './store-folder.ts'

// Columns may come to have such names: PostgreSQL has no capital letters in names that aren't quoted, and no database
// takes its own words for them.
const columns = ['id', 'commonName', 'order']
const rename = `alter table plants rename column name to "commonName"; alter table plants rename column tag to "order"`

let persistence: typeof import('@plant-store/persistence')

// Of modules of its own, which nobody else gets.
afterAll(() => void vi.resetModules())
beforeAll(async () => {
  vi.resetModules()
  persistence = await import('@plant-store/persistence')
  const { plantColumns, rowColumns } = await import('../src/tables.ts')
  for (const { statements } of [
    await import('../src/sqlite/statements.ts'),
    await import('../src/postgres/statements.ts'),
  ]) {
    for (const kind of [statements.change, statements.read]) {
      for (const [name, sql] of Object.entries(kind)) {
        const renamed = sql.replaceAll('"name"', '"commonName"').replaceAll('"tag"', '"order"')
        if (!/token|outbox/i.test(name + sql)) Object.assign(kind, { [name]: renamed })
      }
    }
  }
  for (const names of [plantColumns, rowColumns] as string[][]) names.splice(0, 3, ...columns)
})

const plants = [plant(1, 'Monstera', 'Alismatales'), plant(2, 'Ginkgo')]
const rows = [
  { id: '1', commonName: 'Monstera', order: 'Alismatales' },
  { id: '2', commonName: 'Ginkgo', order: null },
]

async function importAndExport(url: string): Promise<void> {
  await using storage = await persistence.openStorage({ url })
  expect(await storage.plants.insertAll?.(plants)).toEqual(['inserted', 'inserted'])
  await storage.plants.saveAll?.(plants)
  expect(await storage.plants.page({ limit: 3 })).toHaveLength(2)
  await using snapshot = await persistence.openSnapshot(url)
  for await (const piece of snapshot.plants()) expect(piece).toHaveLength(2)
}

test('columns of any names survive import and export on SQLite', async () => {
  const file = `${temporaryFolder()}/plants.db`
  // Makes the tables, and then meets statements for other columns.
  await expect(persistence.openStorage({ url: `file:${file}` })).rejects.toThrow('no column named commonName')
  using database = {
    db: new Database(file),
    [Symbol.dispose]() {
      this.db.close()
    },
  }
  database.db.exec(rename)
  await importAndExport(`file:${file}`)
  expect(
    database.db.prepare('select cast(id as text) as id, "commonName", "order" from plants order by 1').all(),
  ).toEqual(rows)
})

test('columns of any names survive import and export on PostgreSQL', async () => {
  await using database = await createTestDatabase()
  await (await persistence.openStorage({ url: database.url }))[Symbol.asyncDispose]()
  await database.query(rename)
  await importAndExport(database.url)
  expect(await database.query('select id::text, "commonName", "order" from plants order by 1')).toEqual(rows)
})
