import type { ServerResponse } from 'node:http'
import { RequestError } from '../errors/error-numbers.ts'
import { type Budget, uncountedBytesMax } from '../wire/budget.ts'

/**
 * Reads a page at its turn. Its texts may have as many bytes of UTF-8 as there is memory
 * for.
 */
export type ReadPage = ReturnType<typeof createPageReader>

/**
 * @param budget bounds the memory for answers
 * @param ending aborted when pages that wait must end, because the server stops
 */
export function createPageReader(
  budget: Budget,
  pageTextBytesMax: number,
  ending: AbortSignal,
) {
  const atItsTurn = createPageTurns()
  return <Page>(
    response: ServerResponse,
    read: (textBytesMax: number) => Promise<Page>,
  ) =>
    atItsTurn(async () => {
      if (ending.aborted) {
        throw new RequestError('draining', 'the server is shutting down')
      }
      // A page becomes shorter rather than refused.
      const freeBytes = Math.max(uncountedBytesMax, budget.free() / 2)
      const textBytesMax = Math.min(pageTextBytesMax, freeBytes)
      if (textBytesMax > uncountedBytesMax) {
        budget.setHeld(response, textBytesMax)
      }
      return read(textBytesMax)
    })
}

/** How long one turn of the event loop may read pages. A page of 2 MiB takes 20 ms. */
const readMsMax = 5
/** How many turns the others then have. Node accepts one connection in a turn. */
const restTurns = 20

/**
 * Returns a function that runs reads one after another, in turns, so that many long
 * pages do not hold up other requests.
 */
function createPageTurns() {
  const waiting: (() => void)[] = []
  let turnsToRest = 0
  const run = () => {
    const endAt = performance.now() + readMsMax
    if (turnsToRest > 0) {
      turnsToRest--
    }
    while (turnsToRest === 0 && waiting.length > 0) {
      waiting.shift()?.()
      if (performance.now() > endAt) {
        turnsToRest = restTurns
      }
    }
    if (waiting.length > 0 || turnsToRest > 0) {
      setImmediate(run)
    }
  }
  return <Page>(read: () => Promise<Page>) =>
    new Promise<Page>((resolve, reject) => {
      const isIdle = waiting.length === 0 && turnsToRest === 0
      waiting.push(() => read().then(resolve, reject))
      if (isIdle) {
        setImmediate(run)
      }
    })
}
