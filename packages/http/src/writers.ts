import { readFileSync } from 'node:fs'
import fastJsonStringify from 'fast-json-stringify'
import type { schemas as written } from './schemas.ts'

export const schemas: typeof written = JSON.parse(
  readFileSync(new URL('./schemas.json', import.meta.url), 'utf8'),
)

export const writePlant = fastJsonStringify(schemas.Plant)
export const writeStoredPlant = fastJsonStringify(schemas.StoredPlant)
export const writeStoredPlants = fastJsonStringify({ type: 'array', items: schemas.StoredPlant })
export const writeError = fastJsonStringify(schemas.Error)
export const writeStatus = fastJsonStringify(schemas.Status)
