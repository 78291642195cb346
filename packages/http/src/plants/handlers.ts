import {
  DomainError,
  isMet,
  type PlantId,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
} from '@plant-store/domain'
import type { FastifyRequest } from 'fastify'
import type { Handlers, Pipeline } from '../pipeline.ts'
import { readCondition, toEntityTag } from '../request/conditions.ts'
import { readJsonBody } from '../request/json.ts'
import { nextPage, readBoolean, readInteger, readLimit } from '../request/query.ts'
import { notesOf } from '../request-context.ts'
import type { Announcing } from './announce.ts'
import { createBatch } from './batch.ts'
import type { operations } from './operations.ts'
import { StoredPlant } from './schemas.ts'

export function handlers(
  announcing: Announcing,
  pipeline: Pipeline,
): Handlers<typeof operations> {
  const { plants: useCases } = announcing
  return {
    async createPlant({ request, answer }) {
      const plant = parsePlant(readJsonBody(request))
      notesOf(request).logFields = { plantId: `${plant.id}` }
      await useCases.create(plant)
      return answer(200, plant)
    },
    async listPlants({ request, reply, query, answer }) {
      const asked = parsePlantPageQuery({
        limit: readLimit(query.limit),
        after: readInteger(query.after),
        tag: query.tag,
        name_contains: query.name_contains,
        count: readBoolean(query.count),
      })
      const page = await pipeline.readPage(reply, textBytesMax =>
        useCases.list({ ...asked, textBytesMax }),
      )
      const { headerBytesMax } = pipeline.limits
      if (page.next !== undefined) {
        reply.header('link', nextPage(request, page.next, asked, headerBytesMax))
      }
      if (page.total !== undefined) {
        reply.header('total-count', page.total)
      }
      return answer(200, page.plants)
    },
    async readPlant({ request, reply, params, answer }) {
      const id = readId(request, params.id)
      const { matches, differs } = readCondition(request) ?? {}
      const { plant, version } = await useCases.find(id, { matches })
      reply.header('etag', toEntityTag(version))
      return isMet({ differs }, version) ? answer(200, plant) : answer(304, null)
    },
    async replacePlant({ request, reply, params, answer }) {
      const id = readId(request, params.id)
      const sent = readJsonBody(request)
      const plant = parsePlant(sent, id)
      const version = await useCases.replace(plant, readCondition(request))
      // PUT may answer with an ETag only if all that was sent is stored, unchanged (RFC 9110, 9.3.4).
      if (
        Object.keys(sent as object).every(name =>
          Object.hasOwn(StoredPlant.properties, name),
        )
      ) {
        reply.header('etag', toEntityTag(version))
      }
      return answer(200, plant)
    },
    async removePlant({ request, params, answer }) {
      await useCases.remove(readId(request, params.id), readCondition(request))
      return answer(204, null)
    },
    createPlants: createBatch(announcing, pipeline),
  }
}

function readId(request: FastifyRequest, text: string): PlantId {
  if (text === '') {
    const message = 'the path has no id after its last slash'
    throw new DomainError('invalid-id', message)
  }
  const id = parsePlantId(readInteger(text))
  notesOf(request).logFields = { plantId: text }
  return id
}
