export {
  type AskOptions,
  type Client,
  createClient,
  plantRequest,
  type RunningStore,
  type StoreTokens,
} from './client.ts'

import { accessCases } from './cases/access.ts'
import { aroundRequestCases } from './cases/around-request.ts'
import { batchCases } from './cases/batch.ts'
import { bodyCases } from './cases/bodies.ts'
import { conditionCases } from './cases/conditions.ts'
import { idCases } from './cases/ids.ts'
import { listCases } from './cases/list.ts'
import { openPageCases } from './cases/open-pages.ts'
import { operationCases, repeatedIdCases } from './cases/operations.ts'
import { searchCases } from './cases/search.ts'
import { syntaxCases } from './cases/syntax.ts'
import { textCases } from './cases/texts.ts'
import { type ContractCase, plants } from './contract-case.ts'

export { listCases } from './cases/list.ts'
export { descriptionCases } from './cases/open-pages.ts'
export { operationCases } from './cases/operations.ts'
export { timeoutCases } from './cases/timeouts.ts'
export {
  assertFailure,
  assertSuccess,
  type ContractCase,
  held,
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

/** Every clause of the contract, for any running store. */
export const contractCases: readonly ContractCase[] = [
  ...bodyCases,
  ...textCases,
  ...idCases(plants),
  ...repeatedIdCases,
  ...operationCases,
  ...conditionCases,
  ...listCases,
  ...searchCases,
  ...batchCases,
  ...accessCases,
  ...aroundRequestCases,
  ...syntaxCases,
  ...openPageCases,
]
