import type { ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { parsePlant } from '@plant-store/domain'
import { parseJsonRecord } from '@plant-store/json'
import { openStorage } from '@plant-store/persistence'
import { mintSecret, mintWebhookId } from '@plant-store/webhooks'
import { Webhook as Verifier } from 'standardwebhooks'
import { startPartner } from './partner.ts'

/** Adds a webhook to the store, and listens for what it gets. */
export async function listen(
  databaseUrl: string,
  answer: (response: ServerResponse) => unknown = response => response.end(),
) {
  const secret = mintSecret()
  const verifier = new Verifier(secret)
  /** The ids of the plants that were received and verified, in that order. */
  const received: unknown[] = []
  /** The deliveries that the verifier refused. */
  const refused: unknown[] = []
  const partner = await startPartner(async (request, response) => {
    const body = await text(request)
    try {
      verifier.verify(body, request.headers as Record<string, string>)
      received.push(parsePlant(parseJsonRecord(body)).id)
      await answer(response)
    } catch (error) {
      refused.push(error)
      response.writeHead(400).end()
    }
  })
  const id = mintWebhookId()
  const { url } = partner
  await using storage = await openStorage({ url: databaseUrl })
  await storage.webhooks.add(
    { id, url, allowsPrivate: true, events: ['added'], createdAt: new Date() },
    secret,
  )
  return { ...partner, id, received, refused }
}
