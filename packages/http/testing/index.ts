export {
  type AskOptions,
  bareRequest,
  type Client,
  chunk,
  createClient,
  hostAndToken,
  plantRequest,
  type RunningStore,
  type StoreTokens,
} from './client.ts'

import { accessCases } from './cases/access.ts'
import { announceCases } from './cases/announce.ts'
import { aroundPlants, tokenCases } from './cases/around-operation.ts'
import { aroundRequestCases } from './cases/around-request.ts'
import { batchCases } from './cases/batch.ts'
import { bodyCases } from './cases/bodies.ts'
import { conditionCases, conditionRaces } from './cases/conditions.ts'
import { idCases } from './cases/ids.ts'
import { listCases } from './cases/list.ts'
import { openPageCases } from './cases/open-pages.ts'
import { operationCases } from './cases/operations.ts'
import { searchCases } from './cases/search.ts'
import { syntaxCases } from './cases/syntax.ts'
import { tagCases } from './cases/tags.ts'
import { textCases } from './cases/texts.ts'
import type { ContractCase } from './contract-case.ts'

export { assertFailure, assertSuccess } from './assertions.ts'
export { timeoutCases } from './cases/timeouts.ts'
export type { ContractCase } from './contract-case.ts'
export {
  type DescribedOperation,
  type Description,
  readDescription,
  type Schema,
} from './description.ts'
export { jsonOf, readExactly, toJson } from './exact-json.ts'
export { createMemoryTokens } from './memory-tokens.ts'
export { createRecorder, type Recorder } from './recorder.ts'
export { serverDefaults } from './server-defaults.ts'
export { type Answer, type Asked, openWire, type Wire } from './wire.ts'

/**
 * The cases whose answers depend on the process around the interface: its store, tokens
 * and threads.
 */
export const processCases: readonly ContractCase[] = [
  ...idCases,
  ...operationCases,
  ...conditionRaces,
  ...listCases,
  ...searchCases,
  ...announceCases,
  ...tokenCases,
  ...openPageCases,
]

/** Every clause of the contract, for any running store. */
export const contractCases: readonly ContractCase[] = [
  ...processCases,
  ...textCases,
  ...tagCases,
  ...batchCases,
  ...bodyCases,
  ...conditionCases,
  ...accessCases,
  ...aroundPlants,
  ...aroundRequestCases,
  ...syntaxCases,
]
