import { setTimeout as sleep } from 'node:timers/promises'
import type { Plant } from '@plant-store/domain'
import { createDatabase, type PostgresServer, startPostgres, type TestDatabase } from '@plant-store/harness/postgres'
import { openStorage, type Storage } from '@plant-store/persistence'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Fault, startProxy } from './proxy.ts'
import { addWebhook, plant, plantId } from './store-folder.ts'

let server: PostgresServer
let database: TestDatabase
beforeAll(async () => {
  server = await startPostgres({ max_connections: '40' })
  database = await createDatabase(server.url)
  await using storage = await open()
  await addWebhook(storage)
})
beforeEach(async () => {
  await database.query('truncate plants, outbox')
})
afterAll(() => server[Symbol.asyncDispose]())

const open = (url = database.url) => openStorage({ url, timeoutMs: 5_000 })
const silent = { announce: false }

const idsIn = async (table: 'plants' | 'outbox') =>
  (await database.query(`select id::int from ${table} order by id`)).map(({ id }) => id as number)

/** Waits until the connections that were cut have ended what the server had got. */
async function settled(): Promise<void> {
  const busy = `select 1 from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and (state <> 'idle' or wait_event <> 'ClientRead')`
  while ((await database.query(busy)).length > 0) await sleep(2)
}

/** Changes that share a transaction. Plants 1 and 2 are there before them, and 2 to 5 after them. */
const groups: Record<string, (storage: Storage) => Promise<unknown>> = {
  'of single changes': ({ plants }) =>
    Promise.all([
      plants.save(plant(3)),
      plants.remove(plantId(1)),
      plants.insert(plant(4)),
      plants.save(plant(2, 'replaced')),
      plants.save(plant(5)),
    ]),
  'of silent changes': async ({ plants }) => {
    const replaced = [2, 3, 4, 5].map(n => plant(n, 'replaced'))
    await Promise.all([plants.insertAll?.([plant(5)], silent), plants.saveAll?.(replaced, silent)])
  },
}

describe.each(Object.entries(groups))('a group %s is stored as a whole or not at all', (name, change) => {
  const wholes = name === 'of single changes' ? [[2, 3, 4, 5]] : [[1, 2, 3, 4, 5]]

  test.each(['spoiled', 'cut off after', 'cut off after, with its begin cancelled'])(
    'if any message of it is %s',
    { timeout: 120_000 },
    async what => {
      await using proxy = await startProxy(database.url)
      await using far = await open(proxy.url)
      await using other = await open()
      const inPart: unknown[] = []
      const unheard: unknown[] = []
      const failed = new Set<boolean>()
      for (let faultAt = 0, isOver = false; !isOver; faultAt++) {
        await database.query('truncate plants, outbox')
        // Also opens a connection, if the last one was cut.
        await far.plants.saveAll?.([plant(1), plant(2)], silent).catch(() => {})
        await far.plants.saveAll?.([plant(1), plant(2)], silent)
        let count = 0
        proxy.tamper((message): Fault => {
          const at = count++
          if (at === faultAt) return what === 'spoiled' ? 'spoil' : 'cut'
          return what.includes('cancelled') && message.startsWith('begin') ? 'spoil' : undefined
        })
        const outcome = await change(far).then(
          () => true,
          () => false,
        )
        proxy.tamper()
        isOver = count <= faultAt
        failed.add(!outcome)
        await settled()
        const stored = await idsIn('plants')
        const isWhole = [[1, 2], ...wholes].some(whole => `${whole}` === `${stored}`)
        if (!isWhole || (outcome && `${stored}` === '1,2')) inPart.push([faultAt, outcome, stored])
        // What failed must not silence what another server adds.
        await other.plants.insert(plant(100 + faultAt))
        if (!(await idsIn('outbox')).includes(100 + faultAt)) unheard.push(faultAt)
        await database.query('truncate silence').catch(() => {})
      }
      expect({ inPart, unheard }).toEqual({ inPart: [], unheard: [] })
      expect(failed.has(true)).toBe(true)
    },
  )
})
