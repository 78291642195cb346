import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { parsePlant } from '@plant-store/domain'
import { listenLocally } from '@plant-store/harness'
import { parseJsonRecord } from '@plant-store/json'
import { openStorage } from '@plant-store/persistence'
import { mintSecret, mintWebhookId, type WebhookId } from '@plant-store/webhooks'
import { Webhook as Verifier } from 'standardwebhooks'

export interface Listener extends AsyncDisposable {
  readonly id: WebhookId
  readonly url: string
  /** The ids of the plants that were received and verified, in that order. */
  readonly received: bigint[]
  /** The deliveries that the verifier refused. */
  readonly refused: unknown[]
}

type Answer = (
  plant: bigint,
  request: IncomingMessage,
  response: ServerResponse,
) => unknown

const ok: Answer = (_, __, response) => response.end()

/** Adds a webhook to the store, and listens for what it gets. */
export async function listen(
  databaseUrl: string,
  answer: Answer = ok,
): Promise<Listener> {
  const secret = mintSecret()
  const verifier = new Verifier(secret)
  const received: bigint[] = []
  const refused: unknown[] = []
  const server = createServer(async (request, response) => {
    request.on('error', () => {})
    const chunks = []
    for await (const chunk of request) {
      chunks.push(chunk)
    }
    const body = Buffer.concat(chunks).toString()
    try {
      verifier.verify(body, request.headers as Record<string, string>)
      const { id } = parsePlant(parseJsonRecord(body))
      received.push(id)
      await answer(id, request, response)
    } catch (error) {
      refused.push(error)
      response.writeHead(400).end()
    }
  })
  const id = mintWebhookId()
  const url = `http://127.0.0.1:${await listenLocally(server)}/`
  await using storage = await openStorage({ url: databaseUrl })
  await storage.webhooks.add(
    { id, url, allowsPrivate: true, events: ['added'], createdAt: new Date() },
    secret,
  )
  return {
    id,
    url,
    received,
    refused,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
