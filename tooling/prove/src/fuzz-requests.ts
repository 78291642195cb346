import type { DescribedOperation, Description, Schema } from '@plant-store/http/testing'
import fc from 'fast-check'

/** A request, and whether the description calls it valid. */
export interface DrawnRequest {
  readonly path: string
  readonly body: string | Uint8Array | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly isValid: boolean
}

interface Parts {
  readonly inPath: Readonly<Record<string, string>>
  readonly inQuery: Readonly<Record<string, string | undefined>>
  readonly body: string | Uint8Array | undefined
  readonly headers: Readonly<Record<string, string>>
}

const int64 = { minimum: -(2n ** 63n), maximum: 2n ** 63n - 1n }

/** An operation whose schemas are resolved. */
interface ResolvedOperation {
  readonly path: string
  readonly inPath: readonly ResolvedParameter[]
  readonly inQuery: readonly ResolvedParameter[]
  readonly inHeaders: readonly ResolvedParameter[]
  readonly body: Schema | undefined
}

interface ResolvedParameter {
  readonly name: string
  readonly schema: Schema
}

/** Generates requests that differ from valid ones in one respect at most. */
export function drawRequest(
  description: Description,
  operation: DescribedOperation,
): fc.Arbitrary<DrawnRequest> {
  const resolved = resolveOperation(description, operation)
  const valid = drawValid(resolved)
  const wrongs = [
    ...drawWrongParameters(resolved, valid),
    ...drawWrongBodies(resolved, valid),
  ]
  const sound = valid.map(parts => write(resolved.path, parts, true))
  const broken = wrongs.map(wrong =>
    wrong.map(parts => write(resolved.path, parts, false)),
  )
  const weight = Math.max(1, broken.length)
  return fc.oneof({ weight, arbitrary: sound }, ...broken)
}

function resolveOperation(
  description: Description,
  { path, parameters, body }: DescribedOperation,
): ResolvedOperation {
  const parametersIn = (place: string) =>
    parameters
      .filter(parameter => parameter.in === place)
      .map(({ name, schema }) => ({ name, schema: resolve(description, schema) }))
  return {
    path,
    inPath: parametersIn('path'),
    inQuery: parametersIn('query'),
    inHeaders: parametersIn('header'),
    body: body && resolve(description, body),
  }
}

const harmlessHeaders: readonly Readonly<Record<string, string>>[] = [
  {},
  { accept: 'application/json' },
  { accept: 'text/html' },
  { 'x-forwarded-for': '1.2.3.4', 'user-agent': '' },
  { cookie: 'a=b; c', 'accept-encoding': 'gzip, br' },
  { 'if-none-match': '*', range: 'bytes=0-1' },
  { 'if-match': '*' },
  { 'if-none-match': '"a", W/"b,"' },
]

function drawValid({ inPath, inQuery, body }: ResolvedOperation): fc.Arbitrary<Parts> {
  const textsOf = (parameters: readonly ResolvedParameter[]) =>
    Object.fromEntries(
      parameters.map(({ name, schema }) => [name, drawValue(schema).map(String)]),
    )
  // A schema cannot say that a search has no count.
  const withoutCount = (drawn: Parts['inQuery']): Parts['inQuery'] => {
    const { name_contains, count, ...query } = drawn
    if (name_contains) {
      return { ...query, name_contains }
    }
    return count ? { ...query, count } : query
  }
  // Unknown members are valid, because the schemas are open.
  const withUnknown = (value: unknown) =>
    toText({ ...(value as object), 'x-other': [1, { deep: null }] })
  return fc.record({
    inPath: fc.record(textsOf(inPath)),
    inQuery: fc.record(textsOf(inQuery), { requiredKeys: [] }).map(withoutCount),
    body: body ? drawValue(body).map(withUnknown) : fc.constant(undefined),
    headers: fc.constantFrom(...harmlessHeaders),
  })
}

/** Replaces a part of valid requests by a wrong one. */
function spoil<Wrong>(
  valid: fc.Arbitrary<Parts>,
  wrong: fc.Arbitrary<Wrong>,
  put: (wrong: Wrong, parts: Parts) => Partial<Parts>,
): fc.Arbitrary<Parts> {
  return fc
    .tuple(valid, wrong)
    .map(([parts, drawn]) => ({ ...parts, ...put(drawn, parts) }))
}

function drawWrongParameters(
  { inPath, inQuery, inHeaders }: ResolvedOperation,
  valid: fc.Arbitrary<Parts>,
): readonly fc.Arbitrary<Parts>[] {
  const malformed = fc.constantFrom('x', '"', '"a" "b"', '*, "a"', 'w/"a"')
  return [
    ...inPath.map(({ name, schema }) =>
      spoil(valid, wrongText(schema), (wrong, parts) => ({
        inPath: { ...parts.inPath, [name]: wrong },
      })),
    ),
    ...inQuery.map(({ name, schema }) =>
      spoil(valid, wrongText(schema), (wrong, parts) => ({
        inQuery: { ...parts.inQuery, [name]: wrong },
      })),
    ),
    ...inHeaders.map(({ name }) =>
      spoil(valid, malformed, (wrong, parts) => ({
        headers: { ...parts.headers, [name.toLowerCase()]: wrong },
      })),
    ),
  ]
}

const wrongTypes = [
  'text/plain',
  'application/xml',
  'application/json; charset=latin1',
  'json',
]

function drawWrongBodies(
  { body }: ResolvedOperation,
  valid: fc.Arbitrary<Parts>,
): readonly fc.Arbitrary<Parts>[] {
  if (body === undefined) {
    return []
  }
  const noise = fc.record({
    place: fc.nat(),
    mark: fc.constantFrom('{', '"', ']', ',', '\\', '\u0000', '}'),
  })
  const bytes = fc.uint8Array({ minLength: 1, maxLength: 60 })
  const withNoise = spoil(valid, noise, ({ place, mark }, parts) => {
    const text = `${parts.body}`
    const at = place % (text.length + 1)
    return { body: `${text.slice(0, at)}${mark}${text.slice(at)}` }
  })
  return [
    spoil(valid, wrongValue(body), wrong => ({ body: toText(wrong) })),
    withNoise.filter(parts => !isJson(`${parts.body}`)),
    spoil(valid, bytes, wrong => ({ body: wrong })),
    spoil(valid, fc.constantFrom(...wrongTypes), type => ({
      headers: { 'content-type': type },
    })),
  ]
}

function write(
  path: string,
  { inPath, inQuery, body, headers }: Parts,
  isValid: boolean,
): DrawnRequest {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(`${inPath[name]}`),
  )
  const query = Object.entries(inQuery).map(
    ([name, value]) => `${name}=${encodeURIComponent(`${value}`)}`,
  )
  return {
    path: query.length === 0 ? filled : `${filled}?${query.join('&')}`,
    body,
    headers,
    isValid,
  }
}

const nameOf = (reference: string) => reference.slice(reference.lastIndexOf('/') + 1)

/** Resolves the references of a schema and merges its `allOf`. */
function resolve(description: Description, { $ref, ...inline }: Schema): Schema {
  const own: Schema | undefined =
    $ref === undefined ? inline : description.schemas[nameOf($ref)]
  if (own === undefined) {
    throw new Error(`nothing is described at ${$ref}`)
  }
  const parts = (own.allOf ?? []).map(part => resolve(description, part))
  const members = Object.entries(own.properties ?? {})
  return {
    ...own,
    ...(parts.length > 0 && { type: 'object' }),
    properties: Object.assign(
      Object.fromEntries(
        members.map(([name, member]) => [name, resolve(description, member)]),
      ),
      ...parts.map(({ properties }) => properties),
    ),
    required: [own, ...parts].flatMap(({ required = [] }) => required),
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function toText(value: unknown): string {
  if (typeof value === 'bigint') {
    return `${value}`
  }
  if (Array.isArray(value)) {
    return `[${value.map(toText).join()}]`
  }
  if (typeof value !== 'object' || value === null) {
    return JSON.stringify(value)
  }
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}:${toText(member)}`)
    .join()}}`
}

const text = fc
  .string({ unit: 'binary', maxLength: 30 })
  .map(drawn => drawn.toWellFormed().replaceAll('\0', ''))
// A lone surrogate cannot be percent-encoded. U+0000 is text that no store keeps.
const wrongString = text.map(drawn => `${drawn}\0`)

function drawValue({
  type,
  properties = {},
  required = [],
  ...bounds
}: Schema): fc.Arbitrary<unknown> {
  if (type === 'string') {
    return text.filter(drawn => drawn.length >= Number(bounds.minLength ?? 0))
  }
  if (type === 'boolean') {
    return fc.boolean()
  }
  const { minimum, maximum } = { ...int64, ...bounds }
  if (type === 'integer') {
    return fc.bigInt(minimum, maximum)
  }
  if (type !== 'object') {
    throw new Error(`values of type ${type} cannot be generated`)
  }
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, member]) => [name, drawValue(member)]),
  )
  return fc.record(members, { requiredKeys: [...required] })
}

/** Generates invalid parameters for a schema. */
function wrongText({ type, ...bounds }: Schema): fc.Arbitrary<string> {
  if (type === 'string') {
    return wrongString
  }
  if (type === 'boolean') {
    return fc.constantFrom('', ' true', 'TRUE', 'False', '0', '1', 'null')
  }
  const { minimum, maximum } = { ...int64, ...bounds }
  return fc.oneof(
    fc.bigInt(maximum + 1n, maximum * 1_000n).map(String),
    fc.bigInt(minimum * 1_000n - 1_000n, minimum - 1n).map(String),
    fc.constantFrom(
      '',
      ' ',
      '1 ',
      ...'1.5 1e3 0x10 +1 01 -0 NaN null true ١ 1,2 [1]'.split(' '),
    ),
    text.filter(drawn => !/^-?\d+$/.test(drawn) && !drawn.includes('/')),
  )
}

/** Generates invalid values for a schema. */
function wrongValue(schema: Schema): fc.Arbitrary<unknown> {
  const { type, properties = {}, required = [], ...bounds } = schema
  const examples = {
    string: 'text',
    boolean: true,
    number: 1.5,
    integer: 12n,
    array: [],
    object: {},
    null: null,
  }
  const { [type as keyof typeof examples]: _, ...ofOtherTypes } = examples
  const another = fc.constantFrom<unknown>(...Object.values(ofOtherTypes))
  if (type === 'string') {
    return fc.oneof(another, wrongString)
  }
  if (type === 'integer') {
    const { minimum, maximum } = { ...int64, ...bounds }
    return fc.oneof(
      another,
      fc.bigInt(maximum + 1n, 2n ** 80n),
      fc.bigInt(-(2n ** 80n), minimum - 1n),
    )
  }
  const whole = drawValue(schema) as fc.Arbitrary<Record<string, unknown>>
  return fc.oneof(
    another,
    ...required.map(name => whole.map(({ [name]: _, ...rest }) => rest)),
    ...Object.entries(properties).map(([name, member]) =>
      fc
        .tuple(whole, wrongValue(member))
        .map(([value, wrong]) => ({ ...value, [name]: wrong })),
    ),
  )
}
