import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import {
  type DescribedOperation,
  type DescribedResponse,
  type Description,
  readDescription,
  type Schema,
} from './description.ts'
import { readExactly } from './exact-json.ts'
import type { Answer, Asked, Check } from './wire.ts'

/** How much of a body a failure quotes. */
const quotedLengthMax = 200

/** Compares every answer with the service's own interface description. */
export interface Recorder {
  readonly check: Check
  /** Returns the number of checked answers. */
  checked(): number
  /** Returns every declared operation and status, such as `GET /plants 200`. */
  declared(): readonly string[]
  /**
   * Returns every declared part of an answer, such as `GET /plants/{id} 200 name`, and
   * every parameter with the statuses that it must have been sent for: `GET /plants 200
   * ?tag` and `GET /plants 400 ?tag`.
   */
  parts(): readonly string[]
  /** Returns those that were seen, of both. */
  seen(): ReadonlySet<string>
}

/** @param json the interface description as served */
export function createRecorder(json: string): Recorder {
  const description = readDescription(json)
  const judge = new Judge(description)
  let checked = 0

  return {
    check(asked, answer) {
      checked++
      const faults = judge.faultsOf(asked, answer)
      if (faults.length === 0) {
        return
      }
      const what = asked === undefined ? 'no request' : `${asked.method} ${asked.target}`
      const body = `${answer.body}`.slice(0, quotedLengthMax)
      throw new Error(`${what} → ${answer.status}\n  ${faults.join('\n  ')}\n  ${body}`)
    },
    checked: () => checked,
    declared: () =>
      operationsOf(description).flatMap(({ method, path, responses }) =>
        Object.keys(responses).map(status => `${method} ${path} ${status}`),
      ),
    parts: () =>
      operationsOf(description).flatMap(operation => partsOf(operation, description)),
    seen: () => judge.seen,
  }
}

const operationsOf = ({ paths }: Description) =>
  paths.flatMap(({ operations }) => operations)

function partsOf(
  { method, path, parameters, responses }: DescribedOperation,
  { schemas }: Description,
): readonly string[] {
  const [content] = Object.values(responses[200]?.content ?? {})
  const members = membersOf(content?.schema, schemas).map(name => `200 ${name}`)
  const queries = parameters.filter(parameter => parameter.in === 'query')
  const sent = queries.flatMap(({ name }) => [`200 ?${name}`, `400 ?${name}`])
  return [...members, ...sent].map(part => `${method} ${path} ${part}`)
}

/** The declared path and operation of a request, as far as they exist. */
interface Declaration {
  readonly path?: Description['paths'][number]
  readonly operation?: DescribedOperation | undefined
}

/** Compares answers with the description, and notes which parts of it they showed. */
class Judge {
  /** The operations with a status, a member or a parameter that were seen. */
  readonly seen = new Set<string>()
  readonly #description: Description
  readonly #validate: ReturnType<typeof createValidation>

  constructor(description: Description) {
    this.#description = description
    this.#validate = createValidation(description.schemas)
  }

  /** Returns how the answer departs from the description. */
  faultsOf(asked: Asked | undefined, answer: Answer): readonly string[] {
    const { status } = answer
    const declaration = this.#find(asked)
    const { path, operation } = declaration
    const faults = statusFaults(declaration, asked, status)
    if (answer.headers.get('cache-control') !== 'no-store') {
      faults.push('a cache may keep it')
    }
    if (operation !== undefined) {
      this.#noteStatus(operation, status, asked)
    }
    if (path !== undefined && status === 405) {
      faults.push(...allowFaults(path, answer))
    }
    // OpenAPI has no place for the methods that a path lacks.
    const shared = `Failure${status === 405 ? 404 : status}`
    const response = operation?.responses[status] ?? this.#description.responses[shared]
    if (response === undefined) {
      return [...faults, 'the status is declared nowhere']
    }
    return [
      ...faults,
      ...headerFaults(response, answer),
      ...this.#contentFaults(response, answer, { method: asked?.method, operation }),
    ]
  }

  #find(asked: Asked | undefined): Declaration {
    const target = asked?.target
      .replace(/^https?:\/\/[^/?#]*/i, '')
      .replace(/[?#].*$/s, '')
    const path =
      target && this.#description.paths.find(({ pattern }) => pattern.test(target))
    if (!path) {
      return {}
    }
    const wanted = asked?.method === 'HEAD' ? 'GET' : asked?.method
    return { path, operation: path.operations.find(({ method }) => method === wanted) }
  }

  #noteStatus(
    operation: DescribedOperation,
    status: number,
    asked: Asked | undefined,
  ): void {
    if (operation.responses[status] !== undefined) {
      this.#note(operation, `${status}`)
    }
    const search = asked?.target.split('?')[1] ?? ''
    for (const name of new URLSearchParams(search).keys()) {
      this.#note(operation, `${status} ?${name}`)
    }
  }

  #note({ method, path }: DescribedOperation, what: string): void {
    this.seen.add(`${method} ${path} ${what}`)
  }

  #contentFaults(
    response: DescribedResponse,
    answer: Answer,
    { method, operation }: { method: string | undefined } & Declaration,
  ): readonly string[] {
    const { headers, body } = answer
    const [mediaType, content] = Object.entries(response.content ?? {})[0] ?? []
    if (mediaType === undefined || content === undefined) {
      return undeclaredFaults(answer)
    }
    const faults: string[] = []
    if (headers.get('content-type') !== mediaType) {
      faults.push(`content-type is ${headers.get('content-type')}, not ${mediaType}`)
    }
    if (method === 'HEAD') {
      return body.length > 0 ? [...faults, 'an answer to HEAD has no body'] : faults
    }
    if (mediaType !== 'application/json') {
      return faults
    }
    return [...faults, ...this.#bodyFaults(content.schema, answer, operation)]
  }

  #bodyFaults(
    schema: Schema,
    { status, body }: Answer,
    operation: DescribedOperation | undefined,
  ): readonly string[] {
    let value: unknown
    try {
      const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
      value = readExactly(decoder.decode(body))
    } catch (error) {
      return [`the body is not JSON in UTF-8: ${error}`]
    }
    const faults = this.#validate(schema, value)
    if (status >= 400) {
      return [...faults, ...failureFaults(status, value, this.#description.text)]
    }
    if (operation !== undefined) {
      for (const name of Object.keys([value].flat()[0] ?? {})) {
        this.#note(operation, `${status} ${name}`)
      }
    }
    return faults
  }
}

function undeclaredFaults({ headers, body }: Answer): readonly string[] {
  const faults: string[] = []
  if (body.length > 0) {
    faults.push('no body is declared')
  }
  if (headers.has('content-type')) {
    faults.push('no content-type is declared')
  }
  return faults
}

function statusFaults(
  { path, operation }: Declaration,
  asked: Asked | undefined,
  status: number,
): string[] {
  if (operation !== undefined) {
    const isDeclared = operation.responses[status] !== undefined
    return isDeclared ? [] : [`the status ${status} is not declared`]
  }
  if (status < 400) {
    return ['nothing is declared here, so it cannot succeed']
  }
  if (asked === undefined || status !== (path ? 404 : 405)) {
    return []
  }
  return [path ? 'the path is declared' : 'the path is not declared']
}

function allowFaults(
  { operations }: Description['paths'][number],
  { headers }: Answer,
): readonly string[] {
  const declared = operations.flatMap(({ method }) =>
    method === 'GET' ? ['GET', 'HEAD'] : method,
  )
  const allowed = headers.get('allow')?.split(', ') ?? []
  if (allowed.sort().join() === declared.sort().join()) {
    return []
  }
  return [`Allow is ${allowed.join(', ')}, and declared are ${declared.join(', ')}`]
}

function headerFaults(
  response: DescribedResponse,
  { headers }: Answer,
): readonly string[] {
  const required = Object.entries(response.headers ?? {}).filter(
    ([, header]) => header.required,
  )
  const missing = required.filter(([name]) => !headers.has(name.toLowerCase()))
  return missing.map(([name]) => `the header field ${name} is missing`)
}

/** Returns the names of the members of an object, or of those in a list. */
function membersOf(
  schema: Schema = {},
  schemas: Readonly<Record<string, Schema>>,
): string[] {
  const { $ref, allOf = [], items, properties = {} } = schema
  const within = [
    ...allOf,
    ...(items ? [items] : []),
    ...($ref ? [schemas[$ref.split('/').at(-1) as string]] : []),
  ]
  return [...Object.keys(properties), ...within.flatMap(each => membersOf(each, schemas))]
}

/**
 * Checks that a failure has exactly two members, and a number published for its status.
 */
function failureFaults(status: number, value: unknown, published: string): string[] {
  const members = Object.keys(value as object).sort()
  const faults = members.join() === 'error,message' ? [] : [`its members are ${members}`]
  const { error } = value as { error: bigint }
  if (error / 100n !== BigInt(status)) {
    faults.push(`error ${error} belongs to another status`)
  }
  if (!published.includes(`${error}`)) {
    faults.push(`error ${error} is not published`)
  }
  return faults
}

interface Integer {
  readonly format?: string
  readonly minimum?: bigint
  readonly maximum?: bigint
}
type Bounds = readonly [min: bigint, max: bigint]
const formatBounds: Readonly<Record<string, Bounds>> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
}

/**
 * Returns validators for JSON Schema 2020-12 with integers as bigints, which Ajv lacks:
 * it would round their bounds.
 */
function createValidation(schemas: Readonly<Record<string, unknown>>) {
  const ajv = new Ajv2020({ allErrors: true })
  ajv.addKeyword({
    keyword: 'exactInteger',
    validate: ([min, max]: Bounds, value: unknown) =>
      typeof value === 'bigint' && value >= min && value <= max,
  })
  const $defs = forAjv(schemas) as object
  const compiled = new Map<unknown, ValidateFunction>()
  return (schema: unknown, value: unknown): string[] => {
    let validate = compiled.get(schema)
    if (validate === undefined) {
      validate = ajv.compile({ $defs, ...(forAjv(schema) as object) })
      compiled.set(schema, validate)
    }
    if (validate(value)) {
      return []
    }
    return (validate.errors ?? []).map(
      error => `${error.instancePath || 'the body'} ${error.message}`,
    )
  }
}

function forAjv(schema: unknown): unknown {
  if (typeof schema === 'bigint') {
    return Number(schema)
  }
  if (typeof schema === 'string') {
    return schema.replace(/^#\/components\/schemas\//, '#/$defs/')
  }
  if (Array.isArray(schema)) {
    return schema.map(forAjv)
  }
  if (typeof schema !== 'object' || schema === null) {
    return schema
  }
  if ('type' in schema && schema.type === 'integer') {
    const { format = 'int64', minimum, maximum } = schema as Integer
    const [min, max] = formatBounds[format] as Bounds
    return { exactInteger: [minimum ?? min, maximum ?? max] }
  }
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, forAjv(value)]),
  )
}
