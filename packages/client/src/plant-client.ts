import type * as domain from '@plant-store/domain'
import type { Plant } from '@plant-store/domain'
import { parsePlant, parsePlantId, parsePlantListQuery } from '@plant-store/domain'
import { createMany, type ManyCreated } from './create-many.ts'
import {
  type CallOptions,
  createEntityClient,
  type EntityClient,
  type Input,
} from './entity-client.ts'
import { type ClientOptions, operationUrl } from './options.ts'
import { createSend } from './send.ts'

/**
 * Input that breaks a rule rejects with a DomainError: `invalid-plant`, `invalid-id`,
 * `invalid-query`.
 */
export interface PlantClient extends EntityClient<Plant, PlantListQuery> {
  /**
   * Creates any number of plants in few requests. A refused plant does not keep the
   * others from being created. If it rejects, some plants may have been created, and it
   * is safe to call again with the same plants. With `announce: false` they are not
   * announced to webhooks.
   */
  createMany(
    plants: AsyncIterable<PlantInput> | Iterable<PlantInput>,
    options?: CallOptions & { readonly announce?: boolean },
  ): Promise<ManyCreated>
}

export type PlantInput = Input<Plant>

/** The parameters of a list in plain values. `count` adds `total` to the page. */
export interface PlantListQuery
  extends Input<Partial<Pick<domain.PlantListQuery, domain.PlantListParameter>>> {}

export function createPlantClient(options: ClientOptions): PlantClient {
  const path = '/plants'
  const send = createSend(options)
  return {
    ...createEntityClient<Plant, PlantListQuery>({
      ...options,
      path,
      parse: parsePlant,
      parseId: parsePlantId,
      parseQuery: parsePlantListQuery,
    }),
    createMany(plants, { announce = true, signal } = {}) {
      const query = announce ? '' : '?announce=false'
      const request = {
        method: 'POST',
        url: operationUrl(options, `${path}/batch${query}`),
        headers: { 'content-type': 'application/x-ndjson' },
        mayRepeat: true,
        signal,
      } as const
      return createMany(plants, (body, read) => send({ ...request, body, read }))
    },
  }
}
