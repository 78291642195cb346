import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { readExactly } from './exact-json.ts'
import type { Answer } from './wire.ts'

/** What was asked; nothing, where the server could not make a request of it. */
export interface Asked {
  readonly method: string
  readonly target: string
}

/** Compares every answer with the interface description that the service itself serves. */
export interface Recorder {
  /** @throws Error naming everything about the answer that the description does not allow */
  check(asked: Asked | undefined, answer: Answer): void
  /** How many answers were checked. */
  checked(): number
  /** Every operation and status as `GET /plants 200` that the description declares. */
  declared(): readonly string[]
  /** Those that were seen. */
  seen(): ReadonlySet<string>
}

interface Described {
  readonly servers: readonly { readonly url: string }[]
  readonly info: { readonly description: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, { responses?: Responses }>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, unknown>>
    readonly responses: Readonly<Record<string, DescribedResponse>>
  }
}
type Responses = Readonly<Record<string, DescribedResponse | { $ref: string }>>
interface DescribedResponse {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>
  readonly content?: Readonly<Record<string, { readonly schema: unknown }>>
}

const operationMethods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

/** @param description the interface description as JSON text, as it was served */
export function createRecorder(description: string): Recorder {
  const document = readExactly(description) as Described
  const prefix = URL.parse(document.servers[0]?.url ?? '/', 'http://any')?.pathname.replace(/\/$/, '') ?? ''
  const validate = createValidation(document.components.schemas)
  const paths = Object.entries(document.paths).map(([template, item]) => ({
    template,
    pattern: new RegExp(`^${prefix}${template.replaceAll(/\{\w+\}/g, '[^/]*')}$`),
    methods: operationMethods.filter(method => item[method] !== undefined),
  }))
  const responsesOf = (template: string, method: string) =>
    document.paths[template]?.[method]?.responses ?? {}
  const resolve = (response: DescribedResponse | { $ref: string }): DescribedResponse =>
    '$ref' in response
      ? (document.components.responses[response.$ref.split('/').at(-1) as string] as DescribedResponse)
      : response

  let checked = 0
  const seen = new Set<string>()

  /** The declared operation that was asked for, if that is what it was. */
  const operationOf = (asked: Asked | undefined) => {
    const path = asked?.target.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '')
    const method = asked?.method === 'HEAD' ? 'get' : asked?.method.toLowerCase()
    const found = path === undefined ? undefined : paths.find(({ pattern }) => pattern.test(path))
    return { found, method: found?.methods.find(each => each === method) }
  }

  const faultsOf = (asked: Asked | undefined, { status, headers, body }: Answer): string[] => {
    const faults: string[] = []
    const { found, method } = operationOf(asked)
    const isFailure = status >= 400
    let response: DescribedResponse | undefined
    if (found !== undefined && method !== undefined) {
      const declared = responsesOf(found.template, method)[status]
      if (declared === undefined) faults.push(`the status ${status} is not declared`)
      else {
        response = resolve(declared)
        seen.add(`${method.toUpperCase()} ${found.template} ${status}`)
      }
    } else if (!isFailure) {
      faults.push('nothing is declared here, so it can not succeed')
    } else if (asked !== undefined && status === (found ? 404 : 405)) {
      faults.push(found ? 'the path is declared' : 'the path is not declared')
    }
    if (found !== undefined && status === 405) {
      const allowed = found.methods.flatMap(each => (each === 'get' ? ['GET', 'HEAD'] : each.toUpperCase()))
      if (headers.get('allow')?.split(', ').sort().join() !== allowed.sort().join()) {
        faults.push(`Allow is ${headers.get('allow')}, and declared are ${allowed.join(', ')}`)
      }
    }
    response ??= document.components.responses[`Failure${status}`]
    if (response === undefined) return [...faults, 'the status is declared nowhere']

    for (const [name, { required }] of Object.entries(response.headers ?? {})) {
      if (required && !headers.has(name.toLowerCase())) faults.push(`the header field ${name} is missing`)
    }
    const [mediaType, content] = Object.entries(response.content ?? {})[0] ?? []
    if (mediaType === undefined || content === undefined) {
      if (body.length > 0) faults.push('no body is declared')
      if (headers.has('content-type')) faults.push('no content-type is declared')
      return faults
    }
    if (headers.get('content-type') !== mediaType) {
      faults.push(`content-type is ${headers.get('content-type')}, not ${mediaType}`)
    }
    if (asked?.method === 'HEAD') {
      if (body.length > 0) faults.push('an answer to HEAD has no body')
      return faults
    }
    if (mediaType !== 'application/json') return faults
    try {
      const value = readExactly(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body))
      faults.push(...validate(content.schema, value))
      if (isFailure) faults.push(...failureFaults(status, value, document.info.description))
    } catch (error) {
      faults.push(`the body is not JSON in UTF-8: ${(error as Error).message}`)
    }
    return faults
  }

  return {
    check(asked, answer) {
      checked++
      const faults = faultsOf(asked, answer)
      if (faults.length === 0) return
      const what = asked === undefined ? 'no request' : `${asked.method} ${asked.target}`
      throw new Error(`${what} → ${answer.status} ${answer.body}\n  ${faults.join('\n  ')}`)
    },
    checked: () => checked,
    declared: () =>
      paths.flatMap(({ template, methods }) =>
        methods.flatMap(method =>
          Object.keys(responsesOf(template, method)).map(
            status => `${method.toUpperCase()} ${template} ${status}`,
          ),
        ),
      ),
    seen: () => seen,
  }
}

/** A failure has two members and no more, and its number is one of those that are published for its status. */
function failureFaults(status: number, value: unknown, published: string): string[] {
  const members = Object.keys(value as object).sort()
  const faults = members.join() === 'error,message' ? [] : [`its members are ${members}`]
  const { error } = value as { error: bigint }
  if (error / 100n !== BigInt(status)) faults.push(`error ${error} belongs to another status`)
  if (!published.includes(`| ${error} |`)) faults.push(`error ${error} is not published`)
  return faults
}

type Bounds = readonly [min: bigint, max: bigint]
const formatBounds: Readonly<Record<string, Bounds>> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
}

/** Validation by JSON Schema 2020-12, in which integers are bigints: Ajv on its own knows none, and rounds their bounds. */
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
    if (validate(value)) return []
    return (validate.errors ?? []).map(error => `${error.instancePath || 'the body'} ${error.message}`)
  }
}

function forAjv(schema: unknown): unknown {
  if (typeof schema === 'bigint') return Number(schema)
  if (typeof schema === 'string') return schema.replace(/^#\/components\/schemas\//, '#/$defs/')
  if (Array.isArray(schema)) return schema.map(forAjv)
  if (typeof schema !== 'object' || schema === null) return schema
  if ('type' in schema && schema.type === 'integer') {
    const {
      format = 'int64',
      minimum,
      maximum,
    } = schema as {
      format?: string
      minimum?: bigint
      maximum?: bigint
    }
    const [min, max] = formatBounds[format] as Bounds
    return { exactInteger: [minimum ?? min, maximum ?? max] }
  }
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, forAjv(value)]))
}
