import type { Plant } from '@plant-store/domain'
import type { Entry, Rejected } from '../formats/lines.ts'
import { counted, duration, grouped, rate } from '../terminal/output.ts'
import type { Loaded } from './import-target.ts'

export class ImportCounts {
  read = 0
  inserted = 0
  replaced = 0
  alreadyThere = 0
  rejected = 0

  /** @returns the rejected lines of the batch */
  add(batch: readonly Entry<Plant>[], loaded: Loaded): readonly Rejected[] {
    let index = 0
    const rejected = batch.flatMap(entry => {
      if ('reason' in entry) return [entry]
      const reason = loaded.reasons.get(index++)
      return reason === undefined ? [] : [{ line: entry.line, raw: entry.raw, reason }]
    })
    this.read += batch.length
    this.inserted += loaded.inserted
    this.replaced += loaded.replaced
    this.alreadyThere += loaded.alreadyThere
    this.rejected += rejected.length
    return rejected
  }

  summary(rejectsPath: string, seconds: number): string {
    const { inserted, replaced, alreadyThere, rejected } = this
    const imported = inserted + replaced
    return [
      `${counted(imported, 'plant')} imported in ${duration(seconds)} (${rate(imported, seconds)})`,
      replaced > 0 ? `, ${grouped(replaced)} of them replacing others` : '',
      alreadyThere > 0 ? `, ${grouped(alreadyThere)} already stored` : '',
      rejected > 0 ? `; ${counted(rejected, 'line')} rejected, see ${rejectsPath}` : '',
    ].join('')
  }
}
