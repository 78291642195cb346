import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import Fastify from 'fastify'

const properties = { name: { type: 'string' }, tag: { type: 'string' } }
const answer = { type: 'object', required: ['name'], properties }
const plant = {
  ...answer,
  required: ['id', 'name'],
  properties: { id: { type: 'integer' }, ...properties },
}

const { PORT, DATABASE_URL = '', SYNCHRONOUS } = process.env
// As better-sqlite3's documentation advises: with a WAL, and every statement prepared once.
const db = new Database(fileURLToPath(DATABASE_URL))
db.pragma('journal_mode = WAL')
db.pragma(`synchronous = ${SYNCHRONOUS}`)
db.exec(
  'create table if not exists plants (id integer primary key, name text not null, tag text)',
)
const insert = db.prepare('insert into plants (id, name, tag) values (?, ?, ?)')
const find = db.prepare('select id, name, tag from plants where id = ?')
const page = db.prepare(
  'select id, name, tag from plants where id > ? order by id limit ?',
)

const app = Fastify()

app.post<{ Body: { id: number; name: string; tag?: string } }>(
  '/plants',
  { schema: { body: plant, response: { 200: answer } } },
  async ({ body: { id, name, tag } }) => {
    insert.run(id, name, tag ?? null)
    return { name, tag }
  },
)

app.get<{ Params: { id: number } }>(
  '/plants/:id',
  {
    schema: {
      params: { type: 'object', properties: { id: { type: 'integer' } } },
      response: { 200: plant },
    },
  },
  async ({ params }, reply) => find.get(params.id) ?? reply.callNotFound(),
)

app.get<{ Querystring: { limit: number; after: number } }>(
  '/plants',
  {
    schema: {
      querystring: {
        type: 'object',
        properties: {
          limit: { type: 'integer', minimum: 1, maximum: 1000, default: 100 },
          after: { type: 'integer', default: Number.MIN_SAFE_INTEGER },
        },
      },
      response: { 200: { type: 'array', items: plant } },
    },
  },
  async ({ query }) => page.all(query.after, query.limit),
)

app.get('/readyz', async () => ({}))

await app.listen({ port: Number(PORT), host: '127.0.0.1' })
