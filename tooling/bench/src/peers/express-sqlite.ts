import express from 'express'
import { openPlants } from './sqlite.ts'

const { PORT } = process.env
const plants = openPlants()
const app = express()
app.disable('x-powered-by')
app.disable('etag')

app.post('/plants', express.json(), (request, response) => {
  const { id, name, tag } = request.body ?? {}
  if (
    !Number.isSafeInteger(id) ||
    typeof name !== 'string' ||
    (tag !== undefined && typeof tag !== 'string')
  ) {
    response.status(400).json({ error: 400, message: 'not a plant' })
  } else if (plants.insert({ id, name, tag })) {
    response.json({ name, tag })
  } else {
    response.status(400).json({ error: 400, message: 'the id is taken' })
  }
})

app.get('/plants/:id', (request, response) => {
  const plant = plants.find(Number(request.params.id))
  if (plant) response.json(plant)
  else response.status(404).json({ error: 404, message: 'no such plant' })
})

app.get('/plants', (request, response) => {
  const { after: from = Number.MIN_SAFE_INTEGER, limit: most = 100 } = request.query
  const after = Number(from)
  const limit = Number(most)
  if (Number.isSafeInteger(after) && limit >= 1 && limit <= 1000) response.json(plants.page(after, limit))
  else response.status(400).json({ error: 400, message: 'not a page' })
})

app.get('/readyz', (_request, response) => {
  response.json({})
})

app.listen(Number(PORT), '127.0.0.1')
