import { readExactly } from './exact-json.ts'

export interface DescribedResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>
}

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly schema: Schema
}

export interface Schema {
  readonly $ref?: string
  readonly allOf?: readonly Schema[]
  readonly items?: Schema
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly minimum?: bigint
  readonly maximum?: bigint
  readonly minLength?: bigint
}

interface Document {
  readonly info: { readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    /** The responses that operations share, by name. */
    readonly responses: Readonly<Record<string, DescribedResponse>>
  }
}
interface Operation {
  readonly security?: readonly unknown[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Schema }>>
  }
  readonly responses: Readonly<
    Record<string, DescribedResponse | { readonly $ref: string }>
  >
}

export type Description = ReturnType<typeof readDescription>
export type DescribedOperation = Description['paths'][number]['operations'][number]

/**
 * Reads the parts of the interface description that tests need, with integers as bigints.
 *
 * @param json as served
 */
export function readDescription(json: string) {
  const { info, servers, paths, components } = readExactly(json) as Document
  const { responses: shared } = components
  const prefix =
    URL.parse(servers[0]?.url ?? '/', 'http://any')?.pathname.replace(/\/$/, '') ?? ''
  const resolve = (response: Operation['responses'][string]) =>
    '$ref' in response
      ? (shared[response.$ref.split('/').at(-1) as string] as DescribedResponse)
      : response
  return {
    ...components,
    /** Lists the numbers of failures. */
    text: [info, ...Object.values(shared)]
      .map(({ description }) => description)
      .join('\n'),
    // Paths without a parameter are matched first.
    paths: Object.entries(paths)
      .sort(([a], [b]) => Number(a.includes('{')) - Number(b.includes('{')))
      .map(([path, item]) => ({
        template: path,
        /** Matches a target without its query. */
        pattern: new RegExp(`^${prefix}${path.replaceAll(/\{\w+\}/g, '[^/]*')}$`),
        operations: Object.entries(item).map(
          ([method, { security, parameters = [], requestBody, responses }]) => ({
            method: method.toUpperCase(),
            path,
            /** Whether it needs no token. */
            isOpen: security?.length === 0,
            parameters,
            body: requestBody?.content['application/json']?.schema,
            /** The declared response of each status. */
            responses: Object.fromEntries(
              Object.entries(responses).map(([status, response]) => [
                status,
                resolve(response),
              ]),
            ),
          }),
        ),
      })),
  }
}
