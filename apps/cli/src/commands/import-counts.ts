import { type CreateOutcome, idTaken } from '@plant-store/domain'
import type { Entry, Rejected } from '../formats/lines.ts'
import { counted, duration, grouped, rate } from '../terminal/output.ts'

export type Outcome = CreateOutcome | 'replaced'

export class ImportCounts {
  read = 0
  inserted = 0
  replaced = 0
  alreadyThere = 0
  rejected = 0

  /**
   * @param outcomes of the plants of the batch, or nothing if they were not stored
   * @returns the rejected lines of the batch
   */
  add(batch: readonly Entry[], outcomes: readonly Outcome[] = []): readonly Rejected[] {
    let plants = 0
    const rejected = batch.flatMap(entry => {
      if ('reason' in entry) return [entry]
      const { line, raw, plant } = entry
      const outcome = outcomes[plants++]
      return outcome === 'id-taken' ? [{ line, raw, reason: idTaken(plant.id).message }] : []
    })
    const countOf = (wanted: Outcome) => outcomes.filter(outcome => outcome === wanted).length
    this.read += batch.length
    this.inserted += countOf('inserted')
    this.replaced += countOf('replaced')
    this.alreadyThere += countOf('already-there')
    this.rejected += rejected.length
    return rejected
  }

  summary(rejectsPath: string, seconds: number): string {
    const { inserted, replaced, alreadyThere } = this
    const imported = inserted + replaced
    return [
      `${counted(imported, 'plant')} imported in ${duration(seconds)} (${rate(imported, seconds)})`,
      replaced > 0 ? `, ${grouped(replaced)} of them replacing others` : '',
      alreadyThere > 0 ? `, ${grouped(alreadyThere)} already stored` : '',
      this.#rejects(rejectsPath),
    ].join('')
  }

  /** Like {@link summary}, if nothing was stored. */
  verdict(rejectsPath: string): string {
    const valid = counted(this.read - this.rejected, 'valid plant')
    return `${valid}${this.#rejects(rejectsPath)}; nothing was stored`
  }

  #rejects(path: string): string {
    return this.rejected > 0 ? `; ${counted(this.rejected, 'line')} rejected, see ${path}` : ''
  }
}
