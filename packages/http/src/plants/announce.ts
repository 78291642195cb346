import { DomainError, type PlantUseCases } from '@plant-store/domain'
import { Type } from 'typebox'
import { readBoolean } from '../request/query.ts'
import { NewPlant } from './schemas.ts'

export interface Announcing {
  readonly plants: PlantUseCases
  /** The same, but plants added through them are not announced. By default `plants`. */
  readonly unannounced?: PlantUseCases
}

export const announceParameter = {
  announce: Type.Optional(
    Type.Boolean({
      description: 'Whether the plants are announced to webhooks',
      default: true,
    }),
  ),
}

/** @throws DomainError `invalid-query` */
export function useCasesFor(
  query: { readonly announce?: string },
  { plants, unannounced = plants }: Announcing,
): PlantUseCases {
  const announce = readBoolean(query.announce) ?? true
  if (typeof announce === 'string') {
    throw new DomainError('invalid-query', 'announce must be true or false')
  }
  return announce ? plants : unannounced
}

const field = (name: string, description: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
})

/** What a webhook is sent, in the description. */
export const plantAdded = {
  '/plant/webhook': {
    post: {
      operationId: 'plantAdded',
      tags: ['plants'],
      summary: 'A plant was added',
      description: 'Information about a new plant added to the store',
      security: [],
      parameters: [
        field(
          'webhook-id',
          'The same at every attempt to deliver this plant (Standard Webhooks)',
        ),
        field('webhook-timestamp', 'When the attempt was made, in seconds since 1970'),
        field(
          'webhook-signature',
          'v1, and the HMAC-SHA256 of id, timestamp and body; one for each secret',
        ),
      ],
      requestBody: {
        description: 'Plant added to the store',
        required: true,
        content: { 'application/json': { schema: NewPlant } },
      },
      responses: {
        200: {
          description:
            'Return a 200 status to indicate that the data was received successfully',
        },
        410: {
          description:
            'Removes the webhook. After any other status but 2xx, it is tried again',
        },
      },
    },
  },
}
