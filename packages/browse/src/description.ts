import type { IntegerBounds } from './values.ts'

/** What the interface description says of one kind of record. */
export interface Entity {
  /** Such as `plants`. */
  readonly name: string
  readonly path: string
  readonly members: readonly Member[]
  readonly filters: readonly Member[]
  /** Whether the list has pages, by `after`. */
  readonly hasPages: boolean
  readonly canCount: boolean
  /** With PUT a repeated attempt is recognised, with POST it is not. */
  readonly creation: 'PUT' | 'POST' | undefined
  readonly canSave: boolean
  readonly canDelete: boolean
}

/** A member of a record, or a parameter of its list. */
export interface Member {
  readonly name: string
  readonly description: string
  /** Of an integer. */
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

/** Returns the entities of an OpenAPI description: a path whose GET answers an array is one. */
export function readEntities(text: string): readonly Entity[] {
  const { paths, components } = JSON.parse(text, exactInteger) as Description

  const resolve = ({ $ref, allOf = [], ...schema }: Schema): Schema => {
    const named = components.schemas[$ref?.split('/').at(-1) ?? '']
    const parts = [...(named ? [named] : []), ...allOf].map(resolve).concat(schema)
    const properties = Object.assign({}, ...parts.map(part => part.properties))
    const required = parts.flatMap(part => part.required ?? [])
    return Object.assign({}, ...parts, { properties, required })
  }
  const toMember = (
    name: string,
    given: Schema,
    isRequired: boolean,
    hint?: string,
  ): Member => {
    const {
      type,
      description = '',
      minimum = -(2n ** 63n),
      maximum = 2n ** 63n - 1n,
    } = resolve(given)
    const bounds = type === 'integer' ? { minimum, maximum } : undefined
    return {
      name,
      description: hint ?? description,
      bounds,
      isText: type === 'string',
      isRequired,
    }
  }

  return Object.entries(paths).flatMap(([path, { get, post }]) => {
    const list = resolve(
      get?.responses['200']?.content?.['application/json']?.schema ?? {},
    )
    if (get === undefined || list.type !== 'array' || list.items === undefined) {
      return []
    }
    const { properties = {}, required = [] } = resolve(list.items)
    const parameters = (get.parameters ?? []).filter(each => each.in === 'query')
    const isAsked = (name: string) => parameters.some(each => each.name === name)
    const { put, delete: remove } = paths[`${path}/{id}`] ?? {}
    const entity: Entity = {
      name: get.tags?.[0] ?? path.slice(1),
      path,
      members: Object.entries(properties).map(([name, schema]) =>
        toMember(name, schema, required.includes(name)),
      ),
      filters: parameters
        .filter(({ name }) => !['limit', 'after', 'count'].includes(name))
        .map(({ name, schema, description }) =>
          toMember(name, schema, false, description),
        ),
      hasPages: isAsked('after'),
      canCount: isAsked('count'),
      creation: takesHeader(put, 'If-None-Match') ? 'PUT' : post && 'POST',
      canSave: takesHeader(put, 'If-Match'),
      canDelete: takesHeader(remove, 'If-Match'),
    }
    return [entity]
  })
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
