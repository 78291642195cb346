import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import {
  type DescribedOperation,
  type DescribedResponse,
  readDescription,
  type Schema,
} from './description.ts'
import { readExactly } from './exact-json.ts'
import type { Answer, Asked, Check } from './wire.ts'

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
  const validate = createValidation(description.schemas)
  let checked = 0
  const seen = new Set<string>()

  /** Returns the declared path and operation of a request, if any. */
  const find = (asked: Asked | undefined) => {
    const target = asked?.target
      .replace(/^https?:\/\/[^/?#]*/i, '')
      .replace(/[?#].*$/s, '')
    const path = target && description.paths.find(({ pattern }) => pattern.test(target))
    if (!path) {
      return {}
    }
    const wanted = asked?.method === 'HEAD' ? 'GET' : asked?.method
    return { path, operation: path.operations.find(({ method }) => method === wanted) }
  }

  const note = ({ method, path }: DescribedOperation, what: string) =>
    void seen.add(`${method} ${path} ${what}`)

  const faultsOf = (
    asked: Asked | undefined,
    { status, headers, body }: Answer,
  ): string[] => {
    const faults: string[] = []
    const { path, operation } = find(asked)
    const isFailure = status >= 400
    let response: DescribedResponse | undefined
    if (operation !== undefined) {
      response = operation.responses[status]
      if (response === undefined) {
        faults.push(`the status ${status} is not declared`)
      } else {
        note(operation, `${status}`)
      }
      const search = asked?.target.split('?')[1]
      if (search !== undefined) {
        for (const name of new URLSearchParams(search).keys()) {
          note(operation, `${status} ?${name}`)
        }
      }
    } else if (!isFailure) {
      faults.push('nothing is declared here, so it cannot succeed')
    } else if (asked !== undefined && status === (path ? 404 : 405)) {
      faults.push(path ? 'the path is declared' : 'the path is not declared')
    }
    if (path !== undefined && status === 405) {
      const allowed = path.operations.flatMap(({ method }) =>
        method === 'GET' ? ['GET', 'HEAD'] : method,
      )
      if (headers.get('allow')?.split(', ').sort().join() !== allowed.sort().join()) {
        faults.push(
          `Allow is ${headers.get('allow')}, and declared are ${allowed.join(', ')}`,
        )
      }
    }
    // OpenAPI has no place for the methods that a path lacks.
    response ??= description.responses[`Failure${status === 405 ? 404 : status}`]
    if (response === undefined) {
      return [...faults, 'the status is declared nowhere']
    }

    for (const [name, { required }] of Object.entries(response.headers ?? {})) {
      if (required && !headers.has(name.toLowerCase())) {
        faults.push(`the header field ${name} is missing`)
      }
    }
    const [mediaType, content] = Object.entries(response.content ?? {})[0] ?? []
    if (mediaType === undefined || content === undefined) {
      if (body.length > 0) {
        faults.push('no body is declared')
      }
      if (headers.has('content-type')) {
        faults.push('no content-type is declared')
      }
      return faults
    }
    if (headers.get('content-type') !== mediaType) {
      faults.push(`content-type is ${headers.get('content-type')}, not ${mediaType}`)
    }
    if (asked?.method === 'HEAD') {
      if (body.length > 0) {
        faults.push('an answer to HEAD has no body')
      }
      return faults
    }
    if (mediaType !== 'application/json') {
      return faults
    }
    try {
      const value = readExactly(
        new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body),
      )
      faults.push(...validate(content.schema, value))
      if (operation !== undefined && !isFailure) {
        for (const name of Object.keys([value].flat()[0] ?? {})) {
          note(operation, `${status} ${name}`)
        }
      }
      if (isFailure) {
        faults.push(...failureFaults(status, value, description.text))
      }
    } catch (error) {
      faults.push(`the body is not JSON in UTF-8: ${(error as Error).message}`)
    }
    return faults
  }

  return {
    check(asked, answer) {
      checked++
      const faults = faultsOf(asked, answer)
      if (faults.length === 0) {
        return
      }
      const what = asked === undefined ? 'no request' : `${asked.method} ${asked.target}`
      throw new Error(
        `${what} → ${answer.status} ${answer.body}\n  ${faults.join('\n  ')}`,
      )
    },
    checked: () => checked,
    declared: () =>
      description.paths.flatMap(({ operations }) =>
        operations.flatMap(({ method, path, responses }) =>
          Object.keys(responses).map(status => `${method} ${path} ${status}`),
        ),
      ),
    parts: () =>
      description.paths.flatMap(({ operations }) =>
        operations.flatMap(({ method, path, parameters, responses }) => {
          const [content] = Object.values(responses[200]?.content ?? {})
          const members = membersOf(content?.schema, description.schemas).map(
            name => `200 ${name}`,
          )
          const queries = parameters.filter(parameter => parameter.in === 'query')
          const sent = queries.flatMap(({ name }) => [`200 ?${name}`, `400 ?${name}`])
          return [...members, ...sent].map(part => `${method} ${path} ${part}`)
        }),
      ),
    seen: () => seen,
  }
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

type Integer = {
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
