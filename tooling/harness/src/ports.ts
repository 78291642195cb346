import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** Listens on a port of the loopback interface until it is disposed of. */
export async function takePort(): Promise<{ readonly port: number } & AsyncDisposable> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

/** Returns a port of the loopback interface that nobody listens on. */
export async function freePort(): Promise<number> {
  await using taken = await takePort()
  return taken.port
}
