import type { TestDatabase } from '@plant-store/harness/postgres'
import { createTestDatabase } from '@plant-store/harness/vitest'
import { attachStorage, openStorage } from '@plant-store/persistence'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { plant } from './store-folder.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  await using storage = await openStorage({ url: database.url })
  await storage.check()
  await database.query(`
    create function warn() returns trigger language plpgsql as $$ begin
      raise warning 'database must be vacuumed within % transactions', 1000 - new.id;
      return new;
    end $$;
    create trigger warn before insert on plants for each row execute function warn()`)
})
afterAll(() => database[Symbol.asyncDispose]())

test('a change with a warning succeeds, and its warning is reported once', async () => {
  const warnings: string[] = []
  await using storage = await openStorage({
    url: database.url,
    onServerWarning: warning => warnings.push(warning),
  })

  const single = await storage.plants.insert(plant(1))
  const several = await storage.plants.saveAll([plant(2), plant(3)])

  expect(single).toBe('inserted')
  expect(several).toHaveLength(2)
  expect(warnings).toEqual(['database must be vacuumed within 999 transactions'])
})

test('each thread reports the warnings of its own changes', async () => {
  const warnings: string[] = []
  await using storage = await openStorage({ url: database.url })
  await using attached = await attachStorage(storage.share(), {
    onServerWarning: warning => warnings.push(warning),
  })

  await storage.plants.insert(plant(4))
  await attached.plants.insert(plant(5))

  expect(warnings).toEqual(['database must be vacuumed within 995 transactions'])
})
