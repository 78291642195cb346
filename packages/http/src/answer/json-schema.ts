/** JSON Schema (2020-12), as far as the descriptions here need it. */

export interface ObjectSchema {
  readonly type: 'object'
  readonly required: readonly string[]
  readonly properties: Readonly<Record<string, object>>
}

export const text = (description: string) => ({ type: 'string', description })

export const object = <Name extends string>(
  properties: Readonly<Record<Name, object>>,
  ...required: readonly NoInfer<Name>[]
): ObjectSchema => ({ type: 'object', required, properties })

/** A title is the name in the interface description. */
export const named = <Schema extends object>(title: string, schema: Schema) => ({ ...schema, title })

export const about = <Schema extends object>(description: string, schema: Schema) => ({
  ...schema,
  description,
})
