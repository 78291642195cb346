import { createGate, hashToken, scopes } from '@plant-store/access'
import { createPlantStore, type PlantRepository } from '@plant-store/domain'
import { createServer } from '@plant-store/http'
import pg from 'pg'
import { pino } from 'pino'

/**
 * The same service with the simplest possible adapter: each create is an INSERT of its own, on a pool of as many
 * connections as CONNECTIONS says. What sharing commits gains is measured against it.
 */
const { PORT, DATABASE_URL, ACCESS_TOKENS = '', CONNECTIONS } = process.env

const pool = new pg.Pool({ connectionString: DATABASE_URL, max: Number(CONNECTIONS) })
const insert = {
  name: 'insert',
  text: 'insert into plants (id, name, tag) values ($1, $2, $3) on conflict do nothing',
}
const find = { name: 'find', text: 'select name, tag from plants where id = $1' }
const plants: Pick<PlantRepository, 'insert' | 'find'> = {
  async insert({ id, name, tag }) {
    const { rowCount } = await pool.query({ ...insert, values: [id, name, tag] })
    return rowCount === 1 ? 'inserted' : 'id-taken'
  },
  async find(id) {
    const { rows } = await pool.query({ ...find, values: [id] })
    const [row] = rows
    return row && { id, name: row.name, ...(row.tag === null ? {} : { tag: row.tag }) }
  },
}
const token = { name: 'drill', scopes, createdAt: new Date() }
const known = hashToken(ACCESS_TOKENS)

const server = createServer({
  store: createPlantStore({ plants: plants as PlantRepository }),
  gate: createGate({ tokens: { find: async hash => (hash === known ? token : undefined) } }),
  check: async () => void (await pool.query('select 1')),
  logger: pino({ level: 'warn' }),
  limits: {
    bodyBytesMax: 2 ** 20,
    headerBytesMax: 16_384,
    requestTimeoutMs: 30_000,
    headersTimeoutMs: 10_000,
    keepAliveTimeoutMs: 72_000,
  },
})
await server.listen({ host: '127.0.0.1', port: Number(PORT) })
process.once('SIGTERM', () => process.exit(0))
