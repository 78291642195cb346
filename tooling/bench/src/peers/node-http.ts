import { createServer } from 'node:http'

const { PORT } = process.env

// The least that Node can do for a create: no framework, no store.
const server = createServer((request, response) => {
  const answer = (status: number, body: object) => {
    const text = JSON.stringify(body)
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    })
    response.end(text)
  }
  if (request.method !== 'POST') return answer(200, {})
  const chunks: Buffer[] = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const { id, name, tag } = JSON.parse(Buffer.concat(chunks).toString())
    if (Number.isSafeInteger(id) && typeof name === 'string') answer(200, { name, tag })
    else answer(400, { error: 400, message: 'not a plant' })
  })
})

server.listen(Number(PORT), '127.0.0.1')
