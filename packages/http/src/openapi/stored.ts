import { pageLimitDefault, pageLimitMax } from '@plant-store/domain'
import { type TSchema, Type } from 'typebox'
import { header } from './operation.ts'
import { about } from './schemas.ts'

/** What the operations on any entity with an id and versions have in common. */

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

export const entityTag = { ETag: about('The version (RFC 9110, 8.8.3)', Type.String()) }

/** @param id the schema of the id */
export const pageParameters = <Id extends TSchema>(id: Id) => ({
  limit: Type.Optional(
    Type.Integer({
      description: 'The largest number on the page',
      minimum: 1,
      maximum: pageLimitMax,
      default: pageLimitDefault,
    }),
  ),
  after: Type.Optional(about('Only those with a greater id', id)),
})

export const nextPageLink = header(
  'Link',
  'The next page (RFC 8288, rel="next"). Absent on the last page. If it would be too long, the answer is 431.',
)
