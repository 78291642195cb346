import type { Identified } from '@plant-store/domain'
import type { EntityClient, EntityContext, EntityOptions, ListQuery } from './entity.ts'
import { createChanges } from './entity-changes.ts'
import { createReads } from './entity-reads.ts'
import { operationUrl } from './operation-url.ts'
import type { ClientOptions } from './request.ts'
import { createSend } from './send.ts'

export function createEntityClient<Item extends Identified, Query extends ListQuery>(
  options: ClientOptions & EntityOptions<Item, Query>,
): EntityClient<Item, Query> {
  const listUrl = operationUrl(options, options.path)
  const context: EntityContext<Item, Query> = {
    send: createSend(options),
    listUrl,
    itemUrl: id => `${listUrl}/${id}`,
    rules: options,
  }
  const reads = createReads(context)
  return { ...reads, ...createChanges(context, reads.readVersioned) }
}
