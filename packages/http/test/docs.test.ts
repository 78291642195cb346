import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import { startMemoryService } from './memory-service.ts'

test('a file of the reference page is held in memory once, however many clients take it slowly', async () => {
  await using service = await startMemoryService()
  const { hostname, port } = new URL(service.url)
  const path = '/docs/swagger-ui-bundle.js'
  const { length: fileBytes } = new Uint8Array(await (await fetch(service.url + path)).arrayBuffer())
  const served: Socket[] = []
  service.server.server.on('connection', socket => served.push(socket))
  const clientCount = 100
  // More than the system holds for both ends of a connection.
  const times = 16
  const before = process.memoryUsage().arrayBuffers
  const clients = await Promise.all(
    Array.from({ length: clientCount }, async () => {
      const socket = connect({ host: hostname, port: Number(port) })
      await once(socket, 'connect')
      socket.pause()
      socket.write(`GET ${path} HTTP/1.1\r\nhost: h\r\n\r\n`.repeat(times))
      return socket
    }),
  )
  await vi.waitFor(
    () => expect(served.filter(each => each.writableLength > 0)).toHaveLength(clientCount),
    10_000,
  )
  const heldBytes = process.memoryUsage().arrayBuffers - before
  expect(heldBytes).toBeLessThan(10 * fileBytes)
  for (const socket of clients) socket.destroy()
})
