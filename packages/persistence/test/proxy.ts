import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Stands between the store and its server, where networks fail. */
export async function startProxy(databaseUrl: string) {
  const port = Number(new URL(databaseUrl).port)
  const sockets = new Set<Socket>()
  let isSwallowing = false
  let answersMax = Number.POSITIVE_INFINITY
  const listener = createServer(near => {
    const far = connect(port, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    near.on('data', chunk => far.write(chunk)).on('close', () => far.destroy())
    far
      .on('data', chunk => {
        if (!isSwallowing && answersMax-- > 0) near.write(chunk)
      })
      .on('close', () => near.destroy())
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  const url = new URL(databaseUrl)
  url.host = `127.0.0.1:${(listener.address() as AddressInfo).port}`
  return {
    url: url.href,
    swallowAnswers() {
      isSwallowing = true
    },
    /** Lets so many more pieces of answers through. */
    swallowAnswersAfter(pieces: number) {
      answersMax = pieces
    },
    /** Ends all connections; new ones are good again. */
    cut() {
      isSwallowing = false
      answersMax = Number.POSITIVE_INFINITY
      cut()
    },
    async [Symbol.asyncDispose]() {
      listener.close()
      cut()
      await once(listener, 'close')
    },
  }
}
