export {
  type AskOptions,
  type Client,
  chunk,
  createClient,
  plantRequest,
  type RunningStore,
  type StoreTokens,
} from './client.ts'

import { accessCases } from './cases/access.ts'
import { announceCases } from './cases/announce.ts'
import { aroundEntity } from './cases/around-operation.ts'
import { aroundRequestCases } from './cases/around-request.ts'
import { batchCases } from './cases/batch.ts'
import { bodyCases } from './cases/bodies.ts'
import { conditionCases } from './cases/conditions.ts'
import { idCases } from './cases/ids.ts'
import { listCases } from './cases/list.ts'
import { openPageCases } from './cases/open-pages.ts'
import { operationCases } from './cases/operations.ts'
import { searchCases } from './cases/search.ts'
import { syntaxCases } from './cases/syntax.ts'
import { tagCases } from './cases/tags.ts'
import { textCases } from './cases/texts.ts'
import { type ContractCase, type Entity, plants } from './contract-case.ts'

export { timeoutCases } from './cases/timeouts.ts'
export {
  assertFailure,
  assertSuccess,
  type ContractCase,
  jsonOf,
  toJson,
} from './contract-case.ts'
export {
  type DescribedOperation,
  type Description,
  readDescription,
  type Schema,
} from './description.ts'
export { readExactly } from './exact-json.ts'
export { createRecorder, type Recorder } from './recorder.ts'
export { type Answer, type Asked, openWire, type Wire } from './wire.ts'

/** Returns the cases of the promises that every entity makes. */
const entityCases = (entity: Entity): readonly ContractCase[] => [
  ...idCases(entity),
  ...operationCases(entity),
  ...conditionCases(entity),
  ...listCases(entity),
  ...aroundEntity(entity),
]

/** Every clause of the contract, for any running store. */
export const contractCases: readonly ContractCase[] = [
  ...[plants].flatMap(entityCases),
  ...bodyCases,
  ...textCases,
  ...tagCases,
  ...searchCases,
  ...batchCases,
  ...announceCases,
  ...accessCases,
  ...aroundRequestCases,
  ...syntaxCases,
  ...openPageCases,
]
