import {
  type Client,
  type DescribedOperation,
  type Description,
  readDescription,
  readExactly,
  type Schema,
} from '@plant-store/contract'
import fc from 'fast-check'

export interface FuzzFinding {
  readonly requests: number
  readonly failures: readonly string[]
}

/** One request, and whether the description calls it valid. */
interface Drawn {
  readonly path: string
  readonly body: string | Uint8Array | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly isValid: boolean
}

const methods = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'QUERY',
  'MKCOL',
]

/**
 * Sends requests that are made from the description, valid ones and others, and holds the answers against it. That
 * status, media type, header fields and body are declared is the client's own check, with every answer.
 */
export async function fuzz(
  client: Client,
  json: string,
  { seed, runs, endAtMs }: { readonly seed: number; readonly runs: number; readonly endAtMs?: number },
): Promise<FuzzFinding> {
  const description = readDescription(json)
  const operations = description.paths.flatMap(path => path.operations)
  const failures: string[] = []
  let requests = 0
  const ask: Client['ask'] = (...asked) => {
    requests++
    return client.ask(...asked)
  }
  let left = 2 * operations.length + description.paths.length + 1
  const judge = async <Values>(what: string, property: fc.IAsyncProperty<Values>, numRuns = runs) => {
    const found = await fc.check(property, {
      seed,
      numRuns,
      ...(endAtMs !== undefined && {
        // An equal part of what is left of the time for each property that is left.
        interruptAfterTimeLimit: Math.max(1_000, (endAtMs - performance.now()) / left--),
        markInterruptAsFailure: false,
      }),
    })
    if (found.failed)
      failures.push(
        `${what} (seed ${seed}): ${(found.errorInstance as Error | null)?.message}\n${fc.defaultReportMessage(found)}`,
      )
  }

  for (const operation of operations) {
    const { method, path, isOpen } = operation
    const what = `${method} ${path}`
    await judge(
      what,
      fc.asyncProperty(drawRequest(description, operation), async ({ path, body, headers, isValid }) => {
        const answer = await ask(method, path, { ...(body !== undefined && { body }), headers })
        const { status } = answer
        if (status >= 500) throw new Error(`a status of ${status}: ${answer.body}`)
        if (isValid && status >= 400 && status !== 404 && !isTaken(answer.body))
          throw new Error(`a valid request was answered with ${status} ${answer.body}`)
        if (!isValid && status < 400) throw new Error(`an invalid request was answered with ${status}`)
        if (isValid && method === 'DELETE' && status === 204) {
          const after = await ask('GET', path)
          if (after.status !== 404) throw new Error(`what was removed is answered with ${after.status}`)
        }
        if (isValid && method === 'PUT') {
          const after = await ask('GET', path)
          const { id: _, ...shown } = readExactly(`${after.body}`) as Record<string, unknown>
          if (JSON.stringify(shown) !== JSON.stringify(JSON.parse(`${answer.body}`)))
            throw new Error(`what was put is answered with ${after.body}`)
        }
      }),
    )
    await judge(
      `${what} without good credentials`,
      fc.asyncProperty(
        drawRequest(description, operation),
        credentials,
        async ({ path, body }, authorization) => {
          const answer = await ask(method, path, {
            token: null,
            ...(body !== undefined && { body }),
            headers: authorization === undefined ? {} : { authorization },
          })
          const isRefused = answer.status === 401 || answer.status === 429
          if (isRefused === isOpen) throw new Error(`${authorization} was answered with ${answer.status}`)
        },
      ),
      Math.ceil(runs / 5),
    )
  }
  for (const { template: path, operations } of description.paths) {
    const declared = operations.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : method))
    const others = methods.filter(method => !declared.includes(method))
    await judge(
      `methods at ${path}`,
      fc.asyncProperty(fc.constantFrom(...others), fc.bigInt(0n, 100n), async (method, id) => {
        const answer = await ask(method, path.replace('{id}', `${id}`))
        // Allow itself is compared with the description by the client.
        if (answer.status !== 405) throw new Error(`${method} was answered with ${answer.status}`)
      }),
      Math.ceil(runs / 5),
    )
  }
  await judge(
    'paths that are not declared',
    fc.asyncProperty(fc.constantFrom(...methods), fc.webPath(), async (method, path) => {
      const target = `/${path.replace(/^\/+/, '')}`
      const known = description.paths.some(({ pattern }) => pattern.test(decodeURI(target)))
      if (known) return
      const answer = await ask(method, target)
      if (answer.status !== 404) throw new Error(`${method} ${target} was answered with ${answer.status}`)
    }),
  )
  return { requests, failures }
}

const isTaken = (body: Buffer) => `${body}`.includes('"error":40003')

const credentials = fc.oneof(
  fc.constant(undefined),
  fc.constantFrom(
    '',
    'Bearer',
    'Bearer ',
    'Basic cGxhbnQ6c3RvcmU=',
    'Bearer null',
    'bearer,',
    'Bearer a b',
    'Token x',
  ),
  fc.stringMatching(/^[\w.~+/-]{1,40}=*$/).map(token => `Bearer ${token}`),
)

/** Requests that differ from valid ones in one thing at most. */
function drawRequest(
  description: Description,
  { path, parameters, body }: DescribedOperation,
): fc.Arbitrary<Drawn> {
  const inPath = parameters.filter(each => each.in === 'path')
  const inQuery = parameters.filter(each => each.in === 'query')
  const valid = fc.record({
    path: fc.record(
      Object.fromEntries(inPath.map(({ name, schema }) => [name, drawText(description, schema)])),
    ),
    query: fc.record(
      Object.fromEntries(inQuery.map(({ name, schema }) => [name, drawText(description, schema)])),
      { requiredKeys: [] },
    ),
    body: body === undefined ? fc.constant(undefined) : drawValue(description, body).map(withUnknownMembers),
    headers: fc.constantFrom<Readonly<Record<string, string>>>(
      {},
      { accept: 'application/json' },
      { accept: 'text/html' },
      { 'x-forwarded-for': '1.2.3.4', 'user-agent': '' },
      { cookie: 'a=b; c', 'accept-encoding': 'gzip, br' },
      { 'if-none-match': '*', range: 'bytes=0-1' },
    ),
  })
  const write = ({ path: values, query, body: value, headers }: ValidRequest, isValid = true): Drawn => ({
    path: `${fill(path, values)}${writeQuery(query)}`,
    body: value === undefined ? undefined : toText(value),
    headers,
    isValid,
  })
  const wrongs: fc.Arbitrary<Drawn>[] = []
  for (const { name, schema } of inPath) {
    wrongs.push(
      fc.tuple(valid, wrongText(description, schema)).map(([request, wrong]) => ({
        ...write(request, false),
        path: `${fill(path, { ...request.path, [name]: wrong })}${writeQuery(request.query)}`,
      })),
    )
  }
  for (const { name, schema } of inQuery) {
    wrongs.push(
      fc
        .tuple(valid, wrongText(description, schema))
        .map(([request, wrong]) => write({ ...request, query: { ...request.query, [name]: wrong } }, false)),
    )
  }
  if (body !== undefined) {
    wrongs.push(
      fc.tuple(valid, wrongValue(description, body)).map(([request, wrong]) => ({
        ...write(request, false),
        body: toText(wrong),
      })),
      fc
        .tuple(valid, fc.nat(), fc.constantFrom('{', '"', ']', ',', '\\', '\u0000', '}'))
        .map(([request, at, noise]) => {
          const text = toText(request.body)
          const place = at % (text.length + 1)
          const broken = `${text.slice(0, place)}${noise}${text.slice(place)}`
          return { ...write(request, false), body: broken, isValid: parses(broken) }
        })
        .filter(({ isValid }) => !isValid),
      fc.tuple(valid, fc.uint8Array({ minLength: 1, maxLength: 60 })).map(([request, bytes]) => ({
        ...write(request, false),
        body: bytes,
      })),
      fc
        .tuple(
          valid,
          fc.constantFrom('text/plain', 'application/xml', 'application/json; charset=latin1', 'json'),
        )
        .map(([request, type]) => ({
          ...write(request, false),
          headers: { 'content-type': type },
        })),
    )
  }
  const sound = valid.map(request => write(request))
  return wrongs.length === 0 ? sound : fc.oneof({ weight: wrongs.length, arbitrary: sound }, ...wrongs)
}

interface ValidRequest {
  readonly path: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | undefined>>
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
}

const fill = (path: string, values: Readonly<Record<string, string>>) =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] as string))

function writeQuery(query: Readonly<Record<string, string | undefined>>): string {
  const text = Object.entries(query)
    .map(([name, value]) => `${name}=${encodeURIComponent(`${value}`)}`)
    .join('&')
  return text === '' ? '' : `?${text}`
}

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function toText(value: unknown): string {
  if (typeof value === 'bigint') return `${value}`
  if (Array.isArray(value)) return `[${value.map(toText).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}:${toText(member)}`)
    .join()}}`
}

/** Valid all the same: the schemas close no object. */
function withUnknownMembers(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? { ...value, 'x-other': [1, { deep: null }] } : value
}

const text = fc
  .string({ unit: 'binary', maxLength: 30 })
  .map(drawn => drawn.toWellFormed().replaceAll('\0', ''))

/** The members of an object schema, with those that it takes over from others. */
function flatten(description: Description, schema: Schema): Schema {
  const own =
    schema.$ref === undefined ? schema : description.schemas[schema.$ref.split('/').at(-1) as string]
  if (own === undefined) throw new Error(`nothing is described at ${schema.$ref}`)
  if (own.allOf === undefined) return own
  const parts = own.allOf.map(part => flatten(description, part))
  return {
    type: 'object',
    properties: Object.assign({}, ...parts.map(part => part.properties)),
    required: parts.flatMap(part => part.required ?? []),
  }
}

function drawValue(description: Description, schema: Schema): fc.Arbitrary<unknown> {
  const { type, properties = {}, required = [], minimum, maximum } = flatten(description, schema)
  switch (type) {
    case 'string':
      return text
    case 'integer':
      return fc.bigInt(minimum ?? -(2n ** 63n), maximum ?? 2n ** 63n - 1n)
    case 'object':
      return fc.record(
        Object.fromEntries(
          Object.entries(properties).map(([name, member]) => [name, drawValue(description, member)]),
        ),
        { requiredKeys: [...required] },
      )
    default:
      throw new Error(`values of type ${type} can not be drawn`)
  }
}

const drawText = (description: Description, schema: Schema): fc.Arbitrary<string> =>
  drawValue(description, schema).map(value => `${value}`)

/** What a parameter of this schema can't be. */
function wrongText(description: Description, schema: Schema): fc.Arbitrary<string> {
  const { type, minimum = -(2n ** 63n), maximum = 2n ** 63n - 1n } = flatten(description, schema)
  // A lone surrogate can't be percent-encoded; U+0000 is text that nothing keeps.
  if (type === 'string') return text.map(drawn => `${drawn}\0`)
  return fc.oneof(
    fc.bigInt(maximum + 1n, maximum * 1_000n).map(String),
    fc.bigInt(minimum * 1_000n - 1_000n, minimum - 1n).map(String),
    fc.constantFrom(
      '',
      ' ',
      '1.5',
      '1e3',
      '0x10',
      '+1',
      '01',
      '-0',
      'NaN',
      'null',
      'true',
      '١',
      '1 ',
      '1,2',
      '[1]',
    ),
    text.filter(drawn => !/^-?\d+$/.test(drawn) && !drawn.includes('/')),
  )
}

/** What a value of this schema can't be. */
function wrongValue(description: Description, schema: Schema): fc.Arbitrary<unknown> {
  const { type, properties = {}, required = [], minimum, maximum } = flatten(description, schema)
  const others = (is: (value: unknown) => boolean) =>
    fc.constantFrom<unknown>(null, true, 'text', 1.5, 12n, [], {}).filter(value => !is(value))
  if (type === 'string')
    return fc.oneof(
      others(value => typeof value === 'string'),
      text.map(drawn => `${drawn}\0`),
    )
  if (type === 'integer') {
    return fc.oneof(
      others(value => typeof value === 'bigint'),
      fc.bigInt((maximum ?? 2n ** 63n - 1n) + 1n, 2n ** 80n),
      fc.bigInt(-(2n ** 80n), (minimum ?? -(2n ** 63n)) - 1n),
    )
  }
  const whole = drawValue(description, schema) as fc.Arbitrary<Record<string, unknown>>
  return fc.oneof(
    others(value => typeof value === 'object' && value !== null && !Array.isArray(value)),
    ...required.map(name => whole.map(({ [name]: _, ...rest }) => rest)),
    ...Object.entries(properties).map(([name, member]) =>
      fc.tuple(whole, wrongValue(description, member)).map(([value, wrong]) => ({ ...value, [name]: wrong })),
    ),
  )
}
