import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** Listens on the loopback interface, and resolves to the port: a free one by default. */
export async function listenLocally(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(address !== null && typeof address === 'object', 'a TCP server has a port')
  return address.port
}

/** Listens on a port of the loopback interface until it is disposed of. */
export async function takePort(
  wanted = 0,
): Promise<{ readonly port: number } & AsyncDisposable> {
  const server = createServer()
  return {
    port: await listenLocally(server, wanted),
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

/**
 * Returns a port of the loopback interface that nobody listens on. Until it is used no
 * other socket gets it: the ports that systems choose begin at 32,768.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    try {
      await using taken = await takePort(randomInt(10_000, 32_768))
      return taken.port
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') {
        throw error
      }
    }
  }
}
