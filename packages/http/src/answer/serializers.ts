import fastJsonStringify from 'fast-json-stringify'
import type { FastifyInstance } from 'fastify'
import { FailureBody } from './schemas.ts'

/** Routes of this context write answers by their schemas, and judge nothing by them: that is the domain's to do. */
export function serializeBySchemas(app: FastifyInstance): void {
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(({ schema }) => serializerOf(schema as object))
}

const serializers = new Map<unknown, (value: unknown) => string>()

/** One for each title: what is said about a schema at one place does not matter here. */
function serializerOf(schema: { readonly title?: string }): (value: unknown) => string {
  const key = schema.title ?? schema
  const serializer = serializers.get(key) ?? fastJsonStringify(schema)
  serializers.set(key, serializer)
  return serializer
}

export const writeFailure = serializerOf(FailureBody)
