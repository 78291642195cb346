import Fastify from 'fastify'
import pg from 'pg'
import { type Plant, plantAnswerSchema, plantSchema } from './schemas.ts'

// One INSERT for each create, on a pool of connections. Our service has created the table.
const { PORT, DATABASE_URL, POOL } = process.env
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: Number(POOL) })
const text = 'insert into plants (id, name, tag) values ($1, $2, $3)'
const app = Fastify()

app.post<{ Body: Plant }>(
  '/plants',
  { schema: { body: plantSchema, response: { 200: plantAnswerSchema } } },
  async ({ body: { id, name, tag } }) => {
    await pool.query({ name: 'insert', text, values: [id, name, tag] })
    return { name, tag }
  },
)

app.get('/readyz', async () => ({}))

await app.listen({ port: Number(PORT), host: '127.0.0.1' })
