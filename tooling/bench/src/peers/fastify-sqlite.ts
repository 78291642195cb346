import Fastify from 'fastify'
import { errorSchema, newPlantSchema, plantSchema } from './fastify-schemas.ts'
import { type NewPlant, openPlants } from './sqlite.ts'

const { PORT } = process.env
const plants = openPlants()
const app = Fastify()

app.post<{ Body: NewPlant }>(
  '/plants',
  { schema: { body: newPlantSchema, response: { 200: plantSchema, 400: errorSchema } } },
  async ({ body }, reply) => {
    if (plants.insert(body)) return { name: body.name, tag: body.tag }
    return reply.code(400).send({ error: 400, message: 'the id is taken' })
  },
)

app.get<{ Params: { id: number } }>(
  '/plants/:id',
  {
    schema: {
      params: { type: 'object', properties: { id: { type: 'integer' } } },
      response: { 200: newPlantSchema, 404: errorSchema },
    },
  },
  async ({ params }, reply) =>
    plants.find(params.id) ?? reply.code(404).send({ error: 404, message: 'no such plant' }),
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
      response: { 200: { type: 'array', items: newPlantSchema } },
    },
  },
  async ({ query }) => plants.page(query.after, query.limit),
)

app.get('/readyz', async () => ({}))

await app.listen({ port: Number(PORT), host: '127.0.0.1' })
