import type { IntegerBounds } from './values.ts'

/** A kind of record, as the interface description describes it. */
export interface Entity {
  /** The name of all of them, such as `plants`. */
  readonly name: string
  /** The name of one of them, such as `plant`. */
  readonly kind: string
  readonly path: string
  readonly members: readonly Member[]
  readonly filters: readonly Member[]
  /** Whether the list has pages, because it takes `after`. */
  readonly hasPages: boolean
  readonly canCount: boolean
  /** PUT is better, because the store recognises a repeated attempt. */
  readonly creation: 'PUT' | 'POST' | undefined
  readonly canSave: boolean
  readonly canDelete: boolean
  /** Whether many can be created at once. */
  readonly hasBatch: boolean
}

/** A member of a record, or a parameter of its list. */
export interface Member {
  readonly name: string
  readonly description: string
  /** The bounds of an integer. */
  readonly bounds: IntegerBounds | undefined
  readonly isText: boolean
  readonly isRequired: boolean
}

interface Schema {
  readonly $ref?: string
  readonly allOf?: readonly Schema[]
  readonly type?: string
  readonly description?: string
  readonly minimum?: bigint
  readonly maximum?: bigint
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly description?: string
  readonly schema: Schema
}

interface Operation {
  readonly tags?: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, Content>> }>
  >
}

interface Content {
  readonly schema?: Schema
}

interface Description {
  readonly paths: Readonly<
    Record<string, Partial<Record<'get' | 'post' | 'put' | 'delete', Operation>>>
  >
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** Returns the entities of a description: the paths whose GET answers an array. */
export function readEntities(text: string): readonly Entity[] {
  const description = JSON.parse(text, exactInteger) as Description
  return Object.keys(description.paths).flatMap(path => readEntity(description, path))
}

function readEntity(description: Description, path: string): readonly Entity[] {
  const { paths } = description
  const { get, post } = paths[path] ?? {}
  const listContent = get?.responses['200']?.content?.['application/json']
  const list = resolve(description, listContent?.schema ?? {})
  if (get === undefined || list.type !== 'array' || list.items === undefined) {
    return []
  }
  const { properties = {}, required = [] } = resolve(description, list.items)
  const parameters = (get.parameters ?? []).filter(each => each.in === 'query')
  const hasParameter = (name: string) => parameters.some(each => each.name === name)
  const filters = parameters.filter(({ name }) => !ownParameters.includes(name))
  const { put, delete: remove } = paths[`${path}/{id}`] ?? {}
  const name = get.tags?.[0] ?? path.slice(1)
  const entity: Entity = {
    name,
    kind: name.replace(/s$/, ''),
    path,
    members: Object.entries(properties).map(([name, schema]) => ({
      ...readType(description, schema),
      name,
      isRequired: required.includes(name),
    })),
    filters: filters.map(({ name, schema, description: hint = '' }) => ({
      ...readType(description, schema),
      name,
      description: hint,
      isRequired: false,
    })),
    hasPages: hasParameter('after'),
    canCount: hasParameter('count'),
    creation: takesHeader(put, 'If-None-Match') ? 'PUT' : post && 'POST',
    canSave: takesHeader(put, 'If-Match'),
    canDelete: takesHeader(remove, 'If-Match'),
    hasBatch: paths[`${path}/batch`]?.post !== undefined,
  }
  return [entity]
}

/** The parameters of a list that are no filters. */
const ownParameters = ['limit', 'after', 'count']

/** Returns a schema with everything that it refers to. */
function resolve(description: Description, schema: Schema): Schema {
  const { $ref, allOf = [], ...own } = schema
  const named = description.components.schemas[$ref?.split('/').at(-1) ?? '']
  const inherited = [named, ...allOf].filter(part => part !== undefined)
  const parts = [...inherited.map(part => resolve(description, part)), own]
  const properties = Object.assign({}, ...parts.map(part => part.properties))
  const required = parts.flatMap(part => part.required ?? [])
  return Object.assign({}, ...parts, { properties, required })
}

function readType(
  description: Description,
  schema: Schema,
): Pick<Member, 'description' | 'bounds' | 'isText'> {
  const resolved = resolve(description, schema)
  const { type, minimum, maximum } = { ...int64, ...resolved }
  const isInteger = type === 'integer'
  return {
    description: resolved.description ?? '',
    bounds: isInteger ? { minimum, maximum } : undefined,
    isText: type === 'string',
  }
}

/** The bounds of an integer whose description has none. */
export const int64: IntegerBounds = {
  minimum: -9223372036854775808n,
  maximum: 9223372036854775807n,
}

function takesHeader(operation: Operation | undefined, name: string): boolean {
  return (
    operation?.parameters?.some(each => each.in === 'header' && each.name === name) ??
    false
  )
}

/** A JavaScript number would round the bounds of an int64. */
function exactInteger(
  _name: string,
  value: unknown,
  context?: { readonly source?: string },
): unknown {
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    return value
  }
  return BigInt(context?.source ?? value)
}
