import {
  type DescribedOperation,
  type Description,
  toJson,
} from '@plant-store/http/testing'
import fc from 'fast-check'
import { draw } from './values.ts'

/** The parts of a request: what its parameters say, by their place and name. */
interface Parts {
  readonly path: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, unknown>>
  readonly header: Readonly<Record<string, string>>
  readonly body?: string
  /** Whether the description calls the request valid. */
  readonly isValid: boolean
}

const harmlessHeaders: readonly Readonly<Record<string, string>>[] = [
  {},
  { accept: 'text/html' },
  { 'x-forwarded-for': '1.2.3.4', 'user-agent': '' },
  { cookie: 'a=b; c' },
  { 'if-none-match': '*', range: 'bytes=0-1' },
  { 'if-match': '*' },
  { 'if-none-match': '"a", W/"b,"' },
]

/** Draws requests that differ from valid ones in one respect at most. */
export function drawRequest(
  { schemas }: Description,
  { path: template, parameters, body }: DescribedOperation,
) {
  const drawn = parameters.map(each => ({ ...each, ...draw(schemas, each.schema) }))
  const textsIn = (place: 'path' | 'query') =>
    Object.fromEntries(
      drawn
        .filter(parameter => parameter.in === place)
        .map(({ name, right }) => [name, right.map(String)]),
    )
  const bodies = body && draw(schemas, body)
  const valid: fc.Arbitrary<Parts> = fc.record({
    path: fc.record(textsIn('path')),
    query: fc.record(textsIn('query'), { requiredKeys: [] }).map(withoutCount),
    header: fc.constantFrom(...harmlessHeaders),
    ...(bodies && {
      // Unknown members are valid, because the schemas are open.
      body: bodies.right.map(value =>
        toJson({ ...(value as object), 'x-other': [1, { deep: null }] }),
      ),
    }),
    isValid: fc.constant(true),
  })

  const wrongs = drawn
    .filter(parameter => parameter.in !== 'header')
    .map(({ in: place, name, wrongText }) =>
      fc.tuple(valid, wrongText).map(([parts, text]) => {
        const spoilt = { ...parts[place], [name]: text }
        return { ...parts, [place]: spoilt, isValid: false }
      }),
    )
  if (bodies) {
    const wrong = fc
      .tuple(valid, bodies.wrong)
      .map(([parts, value]) => ({ ...parts, body: toJson(value), isValid: false }))
    wrongs.push(wrong)
  }
  const weight = 1 + wrongs.length
  return fc
    .oneof({ weight, arbitrary: valid }, ...wrongs)
    .map(parts => write(template, parts))
}

/** A schema cannot say that a search has no count. */
function withoutCount(drawn: Parts['query']): Parts['query'] {
  const { count: _, ...query } = drawn
  return 'name_contains' in drawn ? query : drawn
}

export type DrawnRequest = ReturnType<typeof write>

/** Returns a request with the target and the header fields that its parts make. */
function write(template: string, parts: Parts) {
  const filled = template.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(`${parts.path[name]}`),
  )
  const query = Object.entries(parts.query).map(
    ([name, value]) => `${name}=${encodeURIComponent(`${value}`)}`,
  )
  return { ...parts, path: `${filled}?${query.join('&')}`, headers: parts.header }
}
