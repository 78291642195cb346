import { DomainError, type Int64, isInt64 } from '@plant-store/domain'
import { Type } from 'typebox'
import { aroundBody, aroundRequest, type Operations } from '../src/openapi/operation.ts'
import { about, int64, named } from '../src/openapi/schemas.ts'
import type { Entity, Handlers } from '../src/pipeline.ts'
import { readJsonBody } from '../src/request/body.ts'
import { readInteger } from '../src/request/query.ts'

/** A second entity, as somebody would add it. */

const Note = named('Note', Type.Object({ id: int64('The id'), name: Type.String() }), {
  id: 1n,
  name: 'g',
})
const params = Type.Object({ id: Note.properties.id })

export const operations = {
  createNote: {
    method: 'POST',
    url: '/notes',
    scope: 'plants:write',
    summary: 'Add a note',
    body: about('The note', Note),
    response: { 200: about('The note', Note) },
    failures: [...aroundRequest, ...aroundBody],
  },
  listNotes: {
    method: 'GET',
    url: '/notes',
    scope: 'plants:read',
    summary: 'List notes',
    querystring: Type.Object({ name: Type.Optional(Type.String({ description: 'Only with this name' })) }),
    response: { 200: about('Notes', Type.Array(Note)) },
    failures: aroundRequest,
  },
  readNote: {
    method: 'GET',
    url: '/notes/:id',
    scope: 'plants:read',
    summary: 'Read a note',
    params,
    response: { 200: about('The note', Note), 304: about('The same', Type.Null()) },
    failures: [404, ...aroundRequest],
  },
} as const satisfies Operations

export interface NoteUseCases {
  readonly notes: Map<bigint, { readonly id: bigint; readonly name: string }>
}

const handlers = ({ notes }: NoteUseCases): Handlers<typeof operations> => ({
  createNote({ request, answer }) {
    const note = readJsonBody(request) as { id: Int64; name: string }
    if (!isInt64(note.id)) throw failure('invalid-note', 'id must be an integer')
    notes.set(note.id, note)
    return answer(200, note)
  },
  listNotes: ({ query, answer }) =>
    answer(
      200,
      [...notes.values()].filter(({ name }) => query.name === undefined || query.name === name),
    ),
  async readNote({ params, answer }) {
    const note = notes.get(readInteger(params.id) as bigint)
    if (note === undefined) throw failure('note-not-found', `there is no note with id ${params.id}`)
    return answer(200, note)
  },
})

/** The domain of this project has no such codes. */
const failure = (code: string, message: string) => new DomainError(code as 'invalid-plant', message)

export const notes = {
  tag: { name: 'notes', description: 'The notes in the store' },
  operations,
  schemas: { Note },
  failures: {
    'invalid-note': [40013, 'The body is not a valid note'],
    'note-not-found': [40403, 'There is no note with this id'],
  },
  handlers,
} satisfies Entity<typeof operations, NoteUseCases>
