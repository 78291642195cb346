import {
  DomainError,
  isMet,
  type PlantId,
  type PlantListParameter,
  type PlantListQuery,
  type PlantUseCases,
  parsePlant,
  parsePlantId,
  parsePlantListQuery,
} from '@plant-store/domain'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ServerLimits } from '../limits.ts'
import type { Authenticate } from '../request/authenticate.ts'
import { acceptBodies, linesMediaType, readWhole } from '../request/bodies.ts'
import { readCondition, toEntityTag } from '../request/conditions.ts'
import { factsOf } from '../request/facts.ts'
import { readJsonBody } from '../request/json.ts'
import type { ReadPage } from '../request/page-reader.ts'
import {
  nextPage,
  readBoolean,
  readInteger,
  readNumber,
  readQueries,
} from '../request/query.ts'
import type { Routes } from '../typed-routes.ts'
import type { Body } from '../wire/body.ts'
import type { Budget } from '../wire/budget.ts'
import { createBatches } from './batch.ts'
import {
  createManySchema,
  createSchema,
  listSchema,
  readSchema,
  removeSchema,
  replaceSchema,
  StoredPlant,
} from './plant-schemas.ts'

export interface PlantRoutesOptions {
  readonly plants: PlantUseCases
  /** The same, but plants added through them are not announced. */
  readonly unannounced: PlantUseCases
  readonly limits: ServerLimits
  readonly authenticate: Authenticate
  readonly readPage: ReadPage
  /** Bounds the memory for bodies. */
  readonly bodyBudget: Budget
  /** Aborted when batches that still arrive must end, because the server stops. */
  readonly ending: AbortSignal
}

/** Adds the routes of plants. */
export function addPlantRoutes(app: FastifyInstance, options: PlantRoutesOptions): void {
  const { limits, bodyBudget } = options
  app.register(async instance => {
    readQueries(instance)
    acceptBodies(instance, 'application/json', bodyBudget, (request, body, done) =>
      readWhole(request, body, limits.bodyBytesMax, done),
    )
    addRoutes(instance, options)
  })
  app.register(async instance => {
    readQueries(instance)
    acceptBodies(instance, linesMediaType, bodyBudget, (_request, body, done) =>
      done(null, body),
    )
    addBatchRoute(instance, options)
  })
}

const reads = { config: { scope: 'plants:read' } } as const
const writes = { config: { scope: 'plants:write' } } as const

/** The schemas of POST and PUT write the plant that a handler returns without its id. */
function addRoutes(routes: Routes, options: PlantRoutesOptions) {
  const { plants, limits, readPage } = options

  // As in the use cases, `then` saves more than 200 bytes a request here and in the read.
  routes.post('/plants', { ...writes, schema: createSchema }, request => {
    const plant = parsePlant(readJsonBody(request))
    factsOf(request).logFields = { plantId: `${plant.id}` }
    return plants.create(plant).then(() => plant)
  })

  routes.get('/plants', { ...reads, schema: listSchema }, async (request, reply) => {
    const query = readListQuery(request.query)
    const page = await readPage(reply.raw, textBytesMax =>
      plants.list({ ...query, textBytesMax }),
    )
    if (page.next !== undefined) {
      reply.header('link', nextPage(request, page.next, query, limits.headerBytesMax))
    }
    if (page.total !== undefined) {
      reply.header('total-count', page.total)
    }
    return page.plants
  })

  routes.get('/plants/:id', { ...reads, schema: readSchema }, (request, reply) => {
    const id = readId(request)
    const condition = readCondition(request)
    const found = plants.find(id, { matches: condition?.matches })
    return found.then(({ plant, version }) => {
      reply.header('etag', toEntityTag(version))
      if (isMet({ differs: condition?.differs }, version)) {
        return plant
      }
      reply.code(304)
      return null
    })
  })

  routes.put(
    '/plants/:id',
    { ...writes, schema: replaceSchema },
    async (request, reply) => {
      const id = readId(request)
      const sent = readJsonBody(request)
      const plant = parsePlant(sent, id)
      const { version, created } = await plants.replace(plant, readCondition(request))
      // Otherwise not all that was sent is stored, and PUT must not answer with an ETag
      // (RFC 9110, 9.3.4).
      const hasOnlyMembers = Object.keys(sent as object).every(name =>
        Object.hasOwn(StoredPlant.properties, name),
      )
      if (hasOnlyMembers) {
        reply.header('etag', toEntityTag(version))
      }
      if (created) {
        reply.code(201)
      }
      return plant
    },
  )

  routes.delete(
    '/plants/:id',
    { ...writes, schema: removeSchema },
    async (request, reply) => {
      await plants.remove(readId(request), readCondition(request))
      reply.code(204)
      return null
    },
  )
}

function addBatchRoute(routes: Routes, options: PlantRoutesOptions) {
  const { plants, unannounced } = options
  const createLines = createBatches(options)

  routes.post('/plants/batch', { ...writes, schema: createManySchema }, async request => {
    const announce = readBoolean(request.query.announce) ?? true
    if (typeof announce === 'string') {
      throw new DomainError('invalid-query', 'announce must be true or false')
    }
    const useCases = announce ? plants : unannounced
    return createLines(request, request.body as Body | undefined, useCases)
  })
}

/** @throws DomainError `invalid-query` */
function readListQuery(
  query: Readonly<Partial<Record<PlantListParameter, string>>>,
): PlantListQuery {
  const values: Record<PlantListParameter, unknown> = {
    limit: readNumber(query.limit),
    after: readInteger(query.after),
    tag: query.tag,
    name_contains: query.name_contains,
    count: readBoolean(query.count),
  }
  return parsePlantListQuery(values)
}

/** A request whose path has an id. */
interface RequestWithId extends Pick<FastifyRequest, 'facts'> {
  readonly params: { readonly id: string }
}

/** @throws DomainError `invalid-id` */
function readId(request: RequestWithId): PlantId {
  const { id } = request.params
  if (id === '') {
    throw new DomainError('invalid-id', 'the path has no id after its last slash')
  }
  const plantId = parsePlantId(readInteger(id))
  factsOf(request).logFields = { plantId: id }
  return plantId
}
