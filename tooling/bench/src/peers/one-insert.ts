import { createGate, hashToken, scopes } from '@plant-store/access'
import { createPlantStore, type Plant, type PlantRepository } from '@plant-store/domain'
import { createServer } from '@plant-store/http'
import { openStorage } from '@plant-store/persistence'
import pg from 'pg'
import { pino } from 'pino'

/**
 * The same service with one INSERT for each create, which is what sharing commits is measured against: the store's own
 * adapter with room for one change in a commit, or where POOL says how many connections, the simplest possible one.
 */
const { PORT, DATABASE_URL = '', ACCESS_TOKENS = '', POOL } = process.env

const plants =
  POOL === undefined
    ? (await openStorage({ url: DATABASE_URL, batchRowsMax: 1 })).plants
    : insertInPool(new pg.Pool({ connectionString: DATABASE_URL, max: Number(POOL) }))

function insertInPool(pool: pg.Pool): PlantRepository {
  const insert = {
    name: 'insert',
    text: 'insert into plants (id, name, tag) values ($1, $2, $3) on conflict do nothing',
  }
  return {
    async insert({ id, name, tag }: Plant) {
      const { rowCount } = await pool.query({ ...insert, values: [id, name, tag] })
      return rowCount === 1 ? 'inserted' : 'id-taken'
    },
  } as PlantRepository
}

const token = { name: 'drill', scopes, createdAt: new Date() }
const known = hashToken(ACCESS_TOKENS)

const server = createServer({
  store: createPlantStore({ plants }),
  gate: createGate({
    tokens: { find: async hash => (hash === known ? token : undefined), markUsed: async () => {} },
  }),
  check: async () => {},
  metrics: async () => '',
  logger: pino({ level: 'warn' }),
})
await server.listen({ host: '127.0.0.1', port: Number(PORT) })
process.once('SIGTERM', () => process.exit(0))
