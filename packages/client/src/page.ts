/**
 * The entry for the page at `/browse`. The page gives its own options, and no error of a
 * browser's `fetch` proves anything, so it needs neither their checks nor the codes of
 * other runtimes. The package does not publish this entry.
 */

export { int64Min, int64Problem, isInt64 } from '@plant-store/domain'
export { createReads, readVersion } from './entity-client.ts'
export { type Answer, createUncheckedSend, type Send } from './send.ts'
