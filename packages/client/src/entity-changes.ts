import { type Identified, isSame } from '@plant-store/domain'
import { writeJsonRecord } from '@plant-store/json'
import type {
  CallOptions,
  EntityClient,
  EntityContext,
  ListQuery,
  Versioned,
} from './entity.ts'
import { conditionFields, readVersion } from './entity-tag.ts'
import { errorNumbers, RefusedError } from './errors.ts'

type Changes<Item extends Identified, Query> = Pick<
  EntityClient<Item, Query>,
  'create' | 'replace' | 'remove'
>

type ReadVersioned<Item extends Identified, Query> = EntityClient<
  Item,
  Query
>['readVersioned']

export function createChanges<Item extends Identified, Query extends ListQuery>(
  { send, listUrl, itemUrl, rules }: EntityContext<Item, Query>,
  readVersioned: ReadVersioned<Item, Query>,
): Changes<Item, Query> {
  const { parse, parseId } = rules
  return {
    async create(input, { signal } = {}) {
      const item = parse(input)
      const body = writeJsonRecord(item)
      const read = (answer: unknown) => parse(answer, item.id)
      return send({ method: 'POST', url: listUrl, body, signal, read })
    },

    async replace(input, options = {}) {
      const item = parse(input)
      const { id, ...rest } = item
      const read = (answer: unknown, headers: Headers): Versioned<Item> => {
        const version = readVersion(headers.get('etag'))
        return { item: parse(answer, id), version }
      }
      const url = itemUrl(id)
      const body = writeJsonRecord(rest)
      const headers = conditionFields(options)
      const { signal } = options
      try {
        return await send({ method: 'PUT', url, headers, body, signal, read })
      } catch (error) {
        const current = await itemAfter(error, () => readVersioned(id, options), signal)
        if (current !== 'missing' && isSame(current.item, item)) {
          return current
        }
        throw error
      }
    },

    async remove(input, options = {}) {
      const id = parseId(input)
      const url = itemUrl(id)
      const headers = conditionFields(options)
      const { signal } = options
      try {
        await send({ method: 'DELETE', url, headers, signal, read: () => {} })
      } catch (error) {
        const current = await itemAfter(error, () => readVersioned(id, options), signal)
        if (current !== 'missing') {
          throw error
        }
      }
    },
  }
}

/**
 * Returns the item as it is now if a lost answer may explain the failure of a change.
 *
 * @throws the failure if it may not, or if the item cannot be read
 */
async function itemAfter<Item>(
  failure: unknown,
  read: () => Promise<Versioned<Item>>,
  signal: CallOptions['signal'],
): Promise<Versioned<Item> | 'missing'> {
  if (!(failure instanceof RefusedError && failure.mayHaveChanged)) {
    throw failure
  }
  if (isMissing(failure)) {
    return 'missing'
  }
  if (failure.number !== errorNumbers['condition-failed']) {
    throw failure
  }
  try {
    return await read()
  } catch (error) {
    signal?.throwIfAborted()
    if (isMissing(error)) {
      return 'missing'
    }
    throw failure
  }
}

/**
 * Returns whether an error says that there is no item. Each entity has its own number for
 * it.
 */
function isMissing(error: unknown): boolean {
  return (
    error instanceof RefusedError &&
    error.status === 404 &&
    error.number !== errorNumbers['no-such-path']
  )
}
