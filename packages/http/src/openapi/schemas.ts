import { Type } from 'typebox'

export const int64 = (description: string) =>
  Type.Unsafe<bigint>({ type: 'integer', format: 'int64', description })
const int32 = (description: string) =>
  Type.Unsafe<number>({ type: 'integer', format: 'int32', description })

/** Where a schema with a name keeps its example. A symbol, as JSON leaves it out. */
export const example = Symbol('example')

/** Returns the schema with a name and an example in the interface description. */
export function named<Schema extends object>(
  title: string,
  schema: Schema,
  given?: unknown,
) {
  const withExample: Schema & { title: string } = Object.assign(
    { ...schema, title },
    { [example]: given },
  )
  return withExample
}

export const about = <Schema extends object>(description: string, schema: Schema) => ({
  ...schema,
  description,
})

export const failureMembers = {
  error: int32('Numeric error indicator'),
  message: Type.String({ description: 'Error text' }),
}
export const FailureBody = named('Error', Type.Object(failureMembers))
