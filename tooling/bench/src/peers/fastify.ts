import Fastify from 'fastify'
import { newPlantSchema, plantSchema } from './fastify-schemas.ts'
import type { NewPlant } from './sqlite.ts'

const { PORT } = process.env
const app = Fastify()

app.post<{ Body: NewPlant }>(
  '/plants',
  { schema: { body: newPlantSchema, response: { 200: plantSchema } } },
  async ({ body: { name, tag } }) => ({ name, tag }),
)

app.get('/readyz', async () => ({}))

await app.listen({ port: Number(PORT), host: '127.0.0.1' })
