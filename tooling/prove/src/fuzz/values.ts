import type { Schema } from '@plant-store/http/testing'
import fc from 'fast-check'

const int64 = { minimum: -(2n ** 63n), maximum: 2n ** 63n - 1n }
const text = fc
  .string({ unit: 'binary', maxLength: 30 })
  .map(drawn => drawn.toWellFormed().replaceAll('\0', ''))
// A lone surrogate cannot be percent-encoded. U+0000 is text that no store keeps.
const wrongString = text.map(drawn => `${drawn}\0`)

/** Resolves the references of a schema and merges its `allOf`. */
export function resolve(
  schemas: Readonly<Record<string, Schema>>,
  { $ref, ...inline }: Schema,
): Schema {
  const own = $ref === undefined ? inline : schemas[`${$ref.split('/').at(-1)}`]
  if (own === undefined) {
    throw new Error(`nothing is described at ${$ref}`)
  }
  const parts = (own.allOf ?? []).map(part => resolve(schemas, part))
  const members = Object.entries(own.properties ?? {}).map(
    ([name, member]) => [name, resolve(schemas, member)] as const,
  )
  return {
    ...own,
    ...(parts.length > 0 && { type: 'object' }),
    properties: Object.assign(
      Object.fromEntries(members),
      ...parts.map(({ properties }) => properties),
    ),
    required: [own, ...parts].flatMap(({ required = [] }) => required),
  }
}

/** Draws values that a resolved schema allows. */
export function drawValue(schema: Schema): fc.Arbitrary<unknown> {
  const { type, properties = {}, required = [], ...bounds } = schema
  if (type === 'string') {
    return text.filter(drawn => drawn.length >= Number(bounds.minLength ?? 0))
  }
  if (type === 'boolean') {
    return fc.boolean()
  }
  if (type === 'integer') {
    const { minimum, maximum } = { ...int64, ...bounds }
    return fc.bigInt(minimum, maximum)
  }
  if (type !== 'object') {
    throw new Error(`values of type ${type} cannot be generated`)
  }
  const members = Object.entries(properties).map(
    ([name, member]) => [name, drawValue(member)] as const,
  )
  return fc.record(Object.fromEntries(members), { requiredKeys: [...required] })
}

/** One value of each type of JSON. */
const examples = {
  ...{ string: 'text', boolean: true, number: 1.5, integer: 12n },
  ...{ array: [], object: {}, null: null },
}

/** Draws values that a resolved schema refuses, each for one reason. */
export function drawWrong(schema: Schema): fc.Arbitrary<unknown> {
  const { type, properties = {}, required = [], ...bounds } = schema
  const { [type as 'null']: _, ...ofOtherTypes } = examples
  const another = fc.constantFrom<unknown>(...Object.values(ofOtherTypes))
  if (type === 'string') {
    return fc.oneof(another, wrongString)
  }
  if (type === 'integer') {
    return fc.oneof(another, beyond(bounds))
  }
  const whole = drawValue(schema) as fc.Arbitrary<Record<string, unknown>>
  return fc.oneof(
    another,
    ...required.map(name => whole.map(({ [name]: _, ...rest }) => rest)),
    ...Object.entries(properties).map(([name, member]) =>
      fc
        .tuple(whole, drawWrong(member))
        .map(([value, wrong]) => ({ ...value, [name]: wrong })),
    ),
  )
}

/** Draws texts that a parameter with this schema refuses. */
export function drawWrongText(schema: Schema): fc.Arbitrary<string> {
  return schema.type === 'string' ? wrongString : drawWrong(schema).map(String)
}

function beyond(bounds: Schema): fc.Arbitrary<bigint> {
  const { minimum, maximum } = { ...int64, ...bounds }
  return fc.oneof(
    fc.bigInt(maximum + 1n, maximum + 2n ** 80n),
    fc.bigInt(minimum - 2n ** 80n, minimum - 1n),
  )
}
