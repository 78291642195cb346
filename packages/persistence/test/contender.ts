import { once } from 'node:events'
import { parsePlant } from '@plant-store/domain'
import { openStorage } from '@plant-store/persistence'

/** What a process of its own is told, and what it answers: which of the ids it got. */
export interface Contest {
  readonly url: string
  readonly ids: readonly number[]
}

process.send?.('ready')
const [{ url, ids }] = (await once(process, 'message')) as [Contest]
// Ten commits of ten processes follow one another, and a disk that is busy besides may take a second for each.
await using storage = await openStorage({ url, timeoutMs: 60_000 })
const outcomes = await Promise.all(
  ids.map(async id => {
    const plant = parsePlant({ id: BigInt(id), name: `${process.pid}` })
    return [id, await storage.plants.insert(plant)] as const
  }),
)
const won = outcomes.filter(([, outcome]) => outcome === 'inserted').map(([id]) => id)
process.send?.(won)
process.disconnect?.()
