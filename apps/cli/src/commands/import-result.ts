import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { closeSync, lstatSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type CreateOutcome, idTaken } from '@plant-store/domain'
import { CommandError, withFile } from '../command-error.ts'
import type { Entry, Rejected } from '../formats/lines.ts'
import { counted, duration, grouped, rate } from '../terminal.ts'

type Outcome = CreateOutcome | 'replaced'

/** Counts what becomes of the lines of an import, and writes the rejected ones to an NDJSON file. */
export class ImportResult implements Disposable {
  readonly counts = { read: 0, inserted: 0, replaced: 0, alreadyThere: 0, rejected: 0 }
  readonly #rejectsPath: string
  #rejects: number | undefined

  /** @throws CommandError if a file of this name cannot be made or replaced */
  constructor(rejectsPath: string) {
    this.#rejectsPath = rejectsPath
    try {
      withFile(rejectsPath, () => tryToReplace(rejectsPath))
    } catch (error) {
      const { message } = error as Error
      throw new CommandError(`${message} (--rejects names the file for rejected lines)`)
    }
  }

  /** @param outcomes of the plants of the part, or nothing if they were not stored */
  add(part: readonly Entry[], outcomes: readonly Outcome[] = []): void {
    let plants = 0
    const rejected = part.flatMap(entry => {
      if ('reason' in entry) {
        return [entry]
      }
      const { line, raw, item } = entry
      const outcome = outcomes[plants++]
      return outcome === 'id-taken'
        ? [{ line, raw, reason: idTaken(item.id).message }]
        : []
    })
    if (rejected.length > 0) {
      this.#write(rejected)
    }
    const countOf = (wanted: Outcome) =>
      outcomes.filter(outcome => outcome === wanted).length
    this.counts.read += part.length
    this.counts.inserted += countOf('inserted')
    this.counts.replaced += countOf('replaced')
    this.counts.alreadyThere += countOf('existing')
    this.counts.rejected += rejected.length
  }

  /** Appends the lines durably. The first ones replace an earlier file. */
  #write(rejected: readonly Rejected[]): void {
    const lines = rejected.map(({ line, reason, raw }) => {
      const content = isUtf8(raw)
        ? { raw: raw.toString() }
        : { rawBase64: raw.toString('base64') }
      return `${JSON.stringify({ line, reason, ...content })}\n`
    })
    withFile(this.#rejectsPath, () => {
      if (this.#rejects === undefined) {
        // Opening an old file would follow a link, which another user can put there.
        rmSync(this.#rejectsPath, { force: true })
        this.#rejects = openSync(this.#rejectsPath, 'wx')
      }
      writeFileSync(this.#rejects, lines.join(''), { flush: true })
    })
  }

  [Symbol.dispose](): void {
    if (this.#rejects !== undefined) {
      closeSync(this.#rejects)
    }
  }

  /** @param seconds nothing if the plants were only judged */
  summary(seconds?: number): string {
    const { read, inserted, replaced, alreadyThere, rejected } = this.counts
    const imported = inserted + replaced
    const rejects =
      rejected > 0
        ? `; ${counted(rejected, 'line')} rejected, see ${this.#rejectsPath}`
        : ''
    if (seconds === undefined) {
      return `${counted(read - rejected, 'valid plant')}${rejects}; nothing was stored`
    }
    return [
      `${counted(imported, 'plant')} imported in ${duration(seconds)} (${rate(imported, seconds)})`,
      replaced > 0 ? `, ${grouped(replaced)} of them replacing others` : '',
      alreadyThere > 0 ? `, ${grouped(alreadyThere)} already stored` : '',
      rejects,
    ].join('')
  }
}

/**
 * Makes sure that a file can be made or replaced, so that no import stops half-way. Leaves
 * an existing file as it is.
 *
 * @throws Error with the reason
 */
function tryToReplace(file: string): void {
  const stat = lstatSync(file, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink()) {
    throw new Error('it is a link: name the file that it leads to')
  }
  if (stat !== undefined && !stat.isFile()) {
    throw new Error('it is not a file')
  }
  // The folder decides whether a file may be replaced, so making one beside it shows that.
  const probe = join(dirname(file), `.plant-store-${randomUUID()}`)
  closeSync(openSync(probe, 'wx'))
  rmSync(probe)
}
