import { pageLimitDefault, pageLimitMax } from '@plant-store/domain'
import { type TSchema, Type } from 'typebox'

/**
 * The parts that schemas of several routes share. Schemas describe, and choose the
 * members of an answer. The domain judges what is sent.
 */

/** Fastify's serializer writes an integer that is a bigint without rounding it. */
export const int64 = (description: string) =>
  Type.Unsafe<bigint>({ type: 'integer', format: 'int64', description })

export const failureMembers = {
  error: Type.Unsafe<number>({
    type: 'integer',
    format: 'int32',
    description: 'Numeric error indicator',
  }),
  message: Type.String({ description: 'Error text' }),
}
export const FailureBody = Type.Object(failureMembers, { $id: 'Error' })

/**
 * Returns the schema with another description.
 *
 * @param headers of the answer that it describes
 */
export const about = <Schema extends object>(
  description: string,
  schema: Schema,
  headers?: object,
) => ({ ...schema, description, headers })

/** Describes an optional parameter of a query, which a handler gets as a text. */
export const inQuery = (schema: TSchema) => Type.Optional(Type.Unsafe<string>(schema))

/** Describes a body of JSON, which a handler gets as bytes. */
export const inBytes = (description: string, schema: TSchema) =>
  Type.Unsafe<Buffer | undefined>(about(description, schema))

/**
 * Describes a header field of an answer.
 *
 * @param required whether each such answer has it
 */
export const header = (name: string, description: string, required?: boolean) => ({
  [name]: { description, required, schema: { type: 'string' } },
})

export const conditionFields = Type.Object({
  'If-Match': Type.Optional(
    Type.String({
      description:
        'What is stored must have one of these entity tags, or with `*` must exist',
    }),
  ),
  'If-None-Match': Type.Optional(
    Type.String({
      description:
        'What is stored must have none of these entity tags, or with `*` must not exist',
    }),
  ),
})

export const entityTag = header('ETag', 'The version (RFC 9110, 8.8.3)')

/** @param id the schema of the id */
export const pageParameters = (id: TSchema) => ({
  limit: inQuery(
    Type.Integer({
      description: 'The largest number on the page',
      minimum: 1,
      maximum: pageLimitMax,
      default: pageLimitDefault,
    }),
  ),
  after: inQuery(about('Only those with a greater id', id)),
})

export const nextPageLink = header(
  'Link',
  'The next page (RFC 8288, rel="next"). Absent on the last page. If it would be too long, the answer is 431.',
)
