import Database from 'better-sqlite3'
import Fastify from 'fastify'
import { openDatabase } from './database.ts'

const properties = { name: { type: 'string' }, tag: { type: 'string' } }
const answer = { type: 'object', required: ['name'], properties }
const plant = {
  ...answer,
  required: ['id', 'name'],
  properties: { id: { type: 'integer' }, ...properties },
}

const { insert, find, page } = openDatabase(Database)
const app = Fastify()

app.post<{ Body: { id: number; name: string; tag?: string } }>(
  '/plants',
  { schema: { body: plant, response: { 200: answer } } },
  async ({ body: { id, name, tag } }) => {
    insert.run(id, name, tag ?? null)
    return { name, tag }
  },
)

app.get<{ Params: { id: string } }>(
  '/plants/:id',
  { schema: { response: { 200: plant } } },
  async ({ params }, reply) => find.get(Number(params.id)) ?? reply.callNotFound(),
)

app.get<{ Querystring: { limit: number; after: number } }>(
  '/plants',
  {
    schema: {
      querystring: {
        type: 'object',
        required: ['limit', 'after'],
        properties: {
          limit: { type: 'integer', minimum: 1, maximum: 1000 },
          after: { type: 'integer' },
        },
      },
      response: { 200: { type: 'array', items: plant } },
    },
  },
  async ({ query }) => page.all(query.after, query.limit),
)

await app.listen({ port: Number(process.env['PORT']), host: '127.0.0.1' })
