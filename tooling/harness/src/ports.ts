import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** Listens on a port of the loopback interface until it is disposed of. */
export async function takePort(
  wanted = 0,
): Promise<{ readonly port: number } & AsyncDisposable> {
  const server = createServer().listen(wanted, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
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
