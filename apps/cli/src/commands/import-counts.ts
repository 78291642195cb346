import { idTaken, type Plant } from '@plant-store/domain'
import type { LoadOutcome } from '@plant-store/persistence'
import type { Entry, Rejected } from '../formats/lines.ts'
import { counted, duration, grouped, rate } from '../terminal/output.ts'

export class ImportCounts {
  read = 0
  inserted = 0
  replaced = 0
  alreadyThere = 0
  rejected = 0

  /** @returns the rejected lines of the batch */
  add(batch: readonly Entry<Plant>[], outcomes: readonly LoadOutcome[]): readonly Rejected[] {
    let loaded = 0
    const rejected = batch.flatMap(entry => {
      if ('reason' in entry) return [entry]
      const { line, raw, value } = entry
      const isTaken = outcomes[loaded++] === 'id-taken'
      return isTaken ? [{ line, raw, reason: idTaken(value.id).message }] : []
    })
    const countOf = (outcome: LoadOutcome) => outcomes.filter(each => each === outcome).length
    this.read += batch.length
    this.inserted += countOf('inserted')
    this.replaced += countOf('replaced')
    this.alreadyThere += countOf('already-there')
    this.rejected += rejected.length
    return rejected
  }

  summary(rejectsPath: string, seconds: number): string {
    const { inserted, replaced, alreadyThere, rejected } = this
    const imported = inserted + replaced
    return [
      `${counted(imported, 'plant')} imported in ${duration(seconds)} (${rate(imported, seconds)})`,
      replaced > 0 ? `, ${grouped(replaced)} of them in the place of others` : '',
      alreadyThere > 0 ? `, ${grouped(alreadyThere)} already there` : '',
      rejected > 0 ? `; ${counted(rejected, 'line')} rejected, see ${rejectsPath}` : '',
    ].join('')
  }
}
