import fastJsonStringify from 'fast-json-stringify'
import { schemas } from './schemas.ts'

export const writePlant = fastJsonStringify(schemas.Plant)
export const writeStoredPlant = fastJsonStringify(schemas.StoredPlant)
export const writeStoredPlants = fastJsonStringify({ type: 'array', items: schemas.StoredPlant })
export const writeError = fastJsonStringify(schemas.Error)
export const writeStatus = fastJsonStringify(schemas.Status)
