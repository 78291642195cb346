import { NewPlant } from './schemas.ts'

const field = (name: string, description: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
})

/** The requests to webhooks, in OpenAPI 3.1. */
export const webhooks = {
  '/plant/webhook': {
    post: {
      operationId: 'plantAdded',
      tags: ['plants'],
      summary: 'A plant was added',
      description: 'Information about a new plant added to the store',
      security: [],
      parameters: [
        field('webhook-id', 'The same at every attempt to deliver this plant (Standard Webhooks)'),
        field('webhook-timestamp', 'When the attempt was made, in seconds since 1970'),
        field('webhook-signature', 'v1, and the HMAC-SHA256 of id, timestamp and body; one for each secret'),
      ],
      requestBody: {
        description: 'Plant added to the store',
        required: true,
        content: { 'application/json': { schema: NewPlant } },
      },
      responses: {
        200: { description: 'Return a 200 status to indicate that the data was received successfully' },
        410: { description: 'Removes the webhook. After any other status but 2xx, it is tried again' },
      },
    },
  },
}
