/** Reading pages, in one turn of the event loop. A page of 2 MiB takes 20 ms. */
const readMsMax = 5
/** Then others have as many turns: Node accepts one connection in a turn. */
const restTurns = 20

/** Returns what runs reads one after another, in turns, so that many long pages do not hold up everybody else. */
export function createPageTurns(): <Page>(read: () => Promise<Page>) => Promise<Page> {
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
  return read =>
    new Promise((resolve, reject) => {
      const isIdle = waiting.length === 0 && turnsToRest === 0
      waiting.push(() => read().then(resolve, reject))
      if (isIdle) {
        setImmediate(run)
      }
    })
}
