import type { Schema } from '@plant-store/http/testing'
import fc from 'fast-check'

const text = fc
  .string({ unit: 'binary', maxLength: 30 })
  .map(drawn => drawn.toWellFormed().replaceAll('\0', ''))
// A lone surrogate cannot be percent-encoded. U+0000 is text that no store keeps.
const wrongString = text.map(drawn => `${drawn}\0`)

/** One value of each type of JSON. */
const examples = {
  string: 'text',
  boolean: true,
  number: 1.5,
  integer: 12n,
  array: [],
  object: {},
  null: null,
}

type Schemas = Readonly<Record<string, Schema>>

/** Merges a schema with what it refers to and consists of. */
function merge(schemas: Schemas, schema: Schema): Schema {
  const { $ref, allOf = [] } = schema
  const named = $ref === undefined ? [] : [schemas[`${$ref.split('/').at(-1)}`] as Schema]
  const all = [...named, ...allOf].map(part => merge(schemas, part)).concat(schema)
  return Object.assign({}, ...all, {
    properties: Object.assign({}, ...all.map(({ properties }) => properties)),
    required: all.flatMap(({ required = [] }) => required),
  })
}

/** The values that a schema allows, and those that it refuses, each for one reason. */
export interface Drawn {
  readonly right: fc.Arbitrary<unknown>
  readonly wrong: fc.Arbitrary<unknown>
  /** The texts that a parameter with this schema refuses. */
  readonly wrongText: fc.Arbitrary<string>
}

export function draw(schemas: Schemas, schema: Schema): Drawn {
  const { type, ...bounds } = merge(schemas, schema)
  const { [type as 'null']: _, ...ofOtherTypes } = examples
  const another = fc.constantFrom<unknown>(...Object.values(ofOtherTypes))
  const drawn = (right: fc.Arbitrary<unknown>, ...wrongs: fc.Arbitrary<unknown>[]) => {
    const wrong = fc.oneof(another, ...wrongs)
    return { right, wrong, wrongText: wrong.map(String) }
  }
  const { minLength = 0n, properties = {}, required = [] } = bounds
  const { minimum = -(2n ** 63n), maximum = 2n ** 63n - 1n } = bounds
  switch (type) {
    case 'string': {
      const right = text.filter(({ length }) => length >= minLength)
      return { ...drawn(right, wrongString), wrongText: wrongString }
    }
    case 'boolean':
      return drawn(fc.boolean())
    case 'integer':
      return drawn(
        fc.bigInt(minimum, maximum),
        fc.bigInt(maximum + 1n, maximum + 2n ** 80n),
        fc.bigInt(minimum - 2n ** 80n, minimum - 1n),
      )
    case 'object': {
      const members = Object.entries(properties).map(
        ([name, member]) => [name, draw(schemas, member)] as const,
      )
      const rights = members.map(([name, { right }]) => [name, right])
      const whole = fc.record<Record<string, unknown>>(Object.fromEntries(rights), {
        requiredKeys: [...required],
      })
      return drawn(
        whole,
        ...required.map(name => whole.map(({ [name]: _, ...rest }) => rest)),
        ...members.map(([name, { wrong }]) =>
          fc.tuple(whole, wrong).map(([value, it]) => ({ ...value, [name]: it })),
        ),
      )
    }
    default:
      throw new Error(`values of type ${type} cannot be generated`)
  }
}
