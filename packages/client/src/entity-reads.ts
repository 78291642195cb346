import { type Identified, type Page, type Total, totalMax } from '@plant-store/domain'
import type { EntityClient, EntityContext, ListQuery } from './entity.ts'
import { readVersion } from './entity-tag.ts'

type Reads<Item extends Identified, Query> = Pick<
  EntityClient<Item, Query>,
  'read' | 'readVersioned' | 'list' | 'pages'
>

export function createReads<Item extends Identified, Query extends ListQuery>({
  send,
  listUrl,
  itemUrl,
  rules,
}: EntityContext<Item, Query>): Reads<Item, Query> {
  const { parse, parseId, parseQuery } = rules
  const list: Reads<Item, Query>['list'] = async (query = {}, { signal } = {}) => {
    const url = new URL(listUrl)
    for (const [name, value] of Object.entries(parseQuery(query))) {
      url.searchParams.set(name, `${value}`)
    }
    const read = (body: unknown, headers: Headers): Page<Item> => {
      const after = readNext(headers.get('link'))
      const total = readTotal(headers.get('total-count'))
      return {
        items: readList(body).map(item => parse(item)),
        ...(after !== undefined && { next: parseId(after) }),
        ...(total !== undefined && { total }),
      }
    }
    return send({ method: 'GET', url, signal, read })
  }

  return {
    list,
    async read(input, { signal } = {}) {
      const id = parseId(input)
      const read = (body: unknown) => parse(body, id)
      return send({ method: 'GET', url: itemUrl(id), signal, read })
    },
    async readVersioned(input, { signal } = {}) {
      const id = parseId(input)
      const read = (body: unknown, headers: Headers) => {
        const version = readVersion(headers.get('etag'))
        return { item: parse(body, id), version }
      }
      return send({ method: 'GET', url: itemUrl(id), signal, read })
    },
    async *pages(query = {}, options) {
      let { after } = query
      do {
        const { items, next }: Page<Item> = await list({ ...query, after }, options)
        yield items
        after = next
      } while (after !== undefined)
    },
  }
}

/** @throws TypeError if the body is no list */
function readList(body: unknown): readonly unknown[] {
  if (!Array.isArray(body)) {
    throw new TypeError('the answer must be a list')
  }
  return body
}

/**
 * Returns after which id the next page begins, if the `Link` field names one (RFC 8288).
 */
function readNext(link: string | null): bigint | undefined {
  const [, after] = /[?&]after=(-?\d+)[^>]*>;\s*rel="next"/.exec(link ?? '') ?? []
  if (after === undefined) {
    return undefined
  }
  return BigInt(after)
}

function readTotal(field: string | null): Total | undefined {
  if (field === null) {
    return undefined
  }
  if (field.endsWith('+')) {
    return `${totalMax}+`
  }
  return Number(field)
}
