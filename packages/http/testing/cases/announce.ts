import { assertFailure } from '../assertions.ts'
import { type ContractCase, casesOf, ownId } from '../contract-case.ts'
import { toJson } from '../exact-json.ts'
import { assertCounts } from './batch.ts'

export const announceCases: readonly ContractCase[] = casesOf('POST /plants/batch', {
  'can be made without an announcement, and any other wish is refused': async client => {
    const body = toJson({ id: ownId(), name: 'n' })
    const headers = { 'content-type': 'application/x-ndjson' }
    const ask = (query: string) =>
      client.ask('POST', `/plants/batch?${query}`, { body, headers })
    for (const wish of ['', 'no', 'true%20']) {
      assertFailure(await ask(`announce=${wish}`), 40005, 'announce')
    }
    assertFailure(await ask('announce=true&announce=true'), 40009, 'announce')
    assertCounts(await ask('announce=false'), { created: 1n })
    assertCounts(await ask('announce=true'), { existing: 1n })
  },
})
