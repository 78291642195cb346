import { readExactly } from './exact-json.ts'

/** The interface description of a store, as far as tests go by it. Its integers are bigints. */
export interface Description {
  /** What stands before every path. */
  readonly prefix: string
  /** Its text, which lists the numbers of failures. */
  readonly text: string
  readonly paths: readonly DescribedPath[]
  readonly schemas: Readonly<Record<string, Schema>>
  /** The responses that any operation can have, by name. */
  readonly responses: Readonly<Record<string, DescribedResponse>>
}

export interface DescribedPath {
  readonly template: string
  /** Matches a target below the prefix, without its query. */
  readonly pattern: RegExp
  readonly operations: readonly DescribedOperation[]
}

export interface DescribedOperation {
  readonly method: string
  readonly path: string
  /** Whether it needs no token. */
  readonly isOpen: boolean
  readonly parameters: readonly Parameter[]
  readonly body: Schema | undefined
  /** By status. */
  readonly responses: Readonly<Record<string, DescribedResponse>>
}

export interface DescribedResponse {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly schema: Schema
}

export interface Schema {
  readonly $ref?: string
  readonly allOf?: readonly Schema[]
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly minimum?: bigint
  readonly maximum?: bigint
}

/** The document itself, in OpenAPI's words. */
interface Document {
  readonly servers: readonly { readonly url: string }[]
  readonly info: { readonly description: string }
  readonly paths: Readonly<Record<string, { readonly parameters?: readonly Parameter[] }>>
  readonly components: Pick<Description, 'schemas' | 'responses'>
}
interface Operation {
  readonly security?: readonly unknown[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<Record<string, DescribedResponse | { readonly $ref: string }>>
}

const methods = /^(get|put|post|delete|options|head|patch|trace)$/

/** @param json the interface description as it was served */
export function readDescription(json: string): Description {
  const { servers, info, paths, components } = readExactly(json) as Document
  const prefix = URL.parse(servers[0]?.url ?? '/', 'http://any')?.pathname.replace(/\/$/, '') ?? ''
  const resolve = (response: Operation['responses'][string]) =>
    '$ref' in response
      ? (components.responses[response.$ref.split('/').at(-1) as string] as DescribedResponse)
      : response
  return {
    prefix,
    text: info.description,
    ...components,
    paths: Object.entries(paths).map(([path, { parameters: ofAll = [], ...item }]) => ({
      template: path,
      pattern: new RegExp(`^${prefix}${path.replaceAll(/\{\w+\}/g, '[^/]*')}$`),
      operations: Object.entries(item as Readonly<Record<string, Operation>>)
        .filter(([method]) => methods.test(method))
        .map(([method, { security, parameters = [], requestBody, responses }]) => ({
          method: method.toUpperCase(),
          path,
          isOpen: security?.length === 0,
          parameters: [...ofAll, ...parameters],
          body: requestBody?.content['application/json']?.schema,
          responses: Object.fromEntries(
            Object.entries(responses).map(([status, response]) => [status, resolve(response)]),
          ),
        })),
    })),
  }
}
