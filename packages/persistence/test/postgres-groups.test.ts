import { setTimeout as sleep } from 'node:timers/promises'
import { hasPgbouncer, startPgbouncer } from '@plant-store/harness/pgbouncer'
import type { TestDatabase } from '@plant-store/harness/postgres'
import { createTestDatabase, needs } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { startProxy } from './proxy.ts'
import { plant, plantId } from './store-folder.ts'

const stack = new AsyncDisposableStack()
let database: TestDatabase
let admin: pg.Pool
const urls = { directly: '', 'behind pgbouncer': '' }
const ask = async (sql: string) =>
  (await admin.query({ text: sql, rowMode: 'array' })).rows.flat()

beforeAll(async () => {
  database = stack.use(await createTestDatabase())
  urls.directly = database.url
  if (hasPgbouncer) {
    const settings = { pool_mode: 'transaction', default_pool_size: '8' }
    const pooler = stack.use(await startPgbouncer(inject('postgresUrl'), settings))
    const path = `${new URL(database.url).pathname}?pool_mode=transaction`
    urls['behind pgbouncer'] = new URL(path, pooler.url).href
  }
  // Of one connection, which takes queries in turn.
  admin = new pg.Pool({ connectionString: database.url, max: 1 })
  stack.defer(() => admin.end())
  await (await open(database.url))[Symbol.asyncDispose]()
})
beforeEach(() => ask('truncate plants'))
afterAll(() => stack.disposeAsync())

const open = (url: string) => openStorage({ url, timeoutMs: 5_000 })

/** Waits until the server has ended what it had got on connections that were cut. */
async function settled(): Promise<void> {
  const busy = `select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
    and (state <> 'idle' or wait_event <> 'ClientRead')`
  while ((await ask(busy)).length > 0) {
    await sleep(1)
  }
}

describe.each([
  ['directly', 'fails', {}],
  ['directly', 'is the last to arrive', {}],
  ['directly', 'is the last to arrive after a begin that failed', {}],
  // Whose connections to the server outlive ours.
  ['behind pgbouncer', 'is the last to arrive', needs('pgbouncer', hasPgbouncer)],
] as const)('%s', (way, fault, options) => {
  test(
    `a group is stored as a whole or not at all if any of its messages ${fault}`,
    options,
    async () => {
      await using proxy = await startProxy(urls[way])
      await using far = await open(proxy.url)
      const { plants } = far
      const wrong: unknown[] = []
      for (let faultAt = 0, isOver = false; !isOver; faultAt++) {
        await ask('truncate plants')
        // Opens a connection, if the last one was cut.
        const before = () => plants.saveAll([plant(1), plant(2)])
        await before().catch(before)
        let count = 0
        proxy.tamper(message => {
          if (count++ === faultAt) {
            return fault === 'fails' ? 'spoil' : 'cut'
          }
          return fault.includes('begin') && message.startsWith('begin')
            ? 'spoil'
            : undefined
        })
        const changes = [
          plants.save(plant(3)),
          plants.remove(plantId(1)),
          plants.save(plant(2, 'replaced')),
        ]
        const succeeded = await Promise.all(changes).then(
          () => true,
          () => false,
        )
        proxy.tamper()
        isOver = count <= faultAt
        await settled()
        const stored = `${await ask('select id from plants order by id')}`
        if (stored !== '2,3' && (succeeded || stored !== '1,2')) {
          wrong.push({ faultAt, succeeded, stored })
        }
      }
      expect(wrong).toEqual([])
    },
  )
})
