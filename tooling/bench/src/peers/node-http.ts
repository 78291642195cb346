import { createServer } from 'node:http'

const { PORT } = process.env

// The least that Node can do for a create: no framework, no store.
const server = createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/plants') {
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      let plant: { id?: unknown; name?: unknown; tag?: unknown } | null
      try {
        plant = JSON.parse(Buffer.concat(chunks).toString())
      } catch {
        plant = null
      }
      if (Number.isSafeInteger(plant?.id) && typeof plant?.name === 'string') {
        answer(200, { name: plant.name, tag: plant.tag })
      } else {
        answer(400, { error: 400, message: 'not a plant' })
      }
    })
  } else if (request.url === '/readyz') {
    answer(200, {})
  } else {
    answer(404, { error: 404, message: 'no such page' })
  }

  function answer(status: number, body: unknown) {
    const text = JSON.stringify(body)
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    })
    response.end(text)
  }
})

server.listen(Number(PORT), '127.0.0.1')
