import { randomUUID } from 'node:crypto'
import { closeSync, lstatSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type CreateOutcome, idTaken, type Plant } from '@plant-store/domain'
import { reasonOf } from '@plant-store/engine'
import { CommandError, withFile } from '../command-error.ts'
import type { Entry, Reader, Rejected } from '../formats/lines.ts'
import { counted, duration, grouped, rate } from '../words.ts'

/** The fate of a plant in an import. */
type Outcome = CreateOutcome | 'replaced'

/**
 * Counts what becomes of the lines of an import, and writes the rejected ones to a file
 * in the format of the lines.
 */
export class ImportResult implements Disposable {
  readonly counts = { read: 0, inserted: 0, replaced: 0, alreadyThere: 0, rejected: 0 }
  readonly #rejectsPath: string
  readonly #reader: Reader<Plant>
  /** The descriptor of the file for rejected lines. Absent until there is one. */
  #rejects: number | undefined
  /** The number of the last line that was stored or rejected, or 0. */
  #lastLine = 0

  /** @throws CommandError if a file of this name cannot be made or replaced */
  constructor(rejectsPath: string, reader: Reader<Plant>) {
    this.#rejectsPath = rejectsPath
    this.#reader = reader
    try {
      tryToReplace(rejectsPath)
    } catch (error) {
      throw new CommandError(
        `${rejectsPath}: ${reasonOf(error)} (--rejects names the file for rejected lines)`,
      )
    }
  }

  /**
   * Counts the lines of a part, and appends the rejected ones durably.
   *
   * @param outcomes of the plants in the part, in their order. Absent if nothing was
   *   stored
   */
  add(part: readonly Entry[], outcomes?: readonly Outcome[]): void {
    const rejected: Rejected[] = []
    const left = outcomes?.values()
    for (const entry of part) {
      if ('reason' in entry) {
        rejected.push(entry)
        continue
      }
      const outcome = left?.next().value
      if (outcome === 'id-taken') {
        rejected.push({ ...entry, reason: idTaken(entry.item.id).message })
      } else if (outcome === 'existing') {
        this.counts.alreadyThere++
      } else if (outcome !== undefined) {
        this.counts[outcome]++
      }
    }
    this.counts.read += part.length
    this.counts.rejected += rejected.length
    if (outcomes !== undefined) {
      this.#lastLine = part.at(-1)?.line ?? this.#lastLine
    }
    if (rejected.length > 0) {
      withFile(this.#rejectsPath, () => this.#writeRejects(rejected))
    }
  }

  /** The first ones replace the file of an earlier import. */
  #writeRejects(rejected: readonly Rejected[]) {
    const lines = rejected.map(each => this.#reader.rejectsLine(each))
    if (this.#rejects === undefined) {
      // Opening an old file would follow a link, which another user can put there.
      rmSync(this.#rejectsPath, { force: true })
      this.#rejects = openSync(this.#rejectsPath, 'wx')
      lines.unshift(this.#reader.rejectsHead())
    }
    writeFileSync(this.#rejects, Buffer.concat(lines), { flush: true })
  }

  [Symbol.dispose](): void {
    if (this.#rejects !== undefined) {
      closeSync(this.#rejects)
    }
  }

  get #imported(): number {
    return this.counts.inserted + this.counts.replaced
  }

  /** Returns what a failure left in the store. */
  describeStored(): string {
    if (this.#lastLine === 0) {
      return 'nothing was imported'
    }
    const plants = counted(this.#imported, 'plant')
    return `${plants} imported from the lines before line ${this.#lastLine + 1}`
  }

  describeJudged(): string {
    const valid = this.counts.read - this.counts.rejected
    return `${counted(valid, 'valid plant')}${this.#describeRejects()}; nothing was stored`
  }

  describeImported(seconds: number): string {
    const { replaced, alreadyThere } = this.counts
    const imported = this.#imported
    const speed = `${duration(seconds)} (${rate(imported, seconds)})`
    let words = `${counted(imported, 'plant')} imported in ${speed}`
    if (replaced > 0) {
      words += `, ${grouped(replaced)} of them replacing others`
    }
    if (alreadyThere > 0) {
      words += `, ${grouped(alreadyThere)} already stored`
    }
    return words + this.#describeRejects()
  }

  #describeRejects() {
    const { rejected } = this.counts
    if (rejected === 0) {
      return ''
    }
    return `; ${counted(rejected, 'line')} rejected, see ${this.#rejectsPath}`
  }
}

/**
 * Makes sure that a file can be made or replaced, so that no import stops half-way.
 * Leaves an existing file as it is.
 *
 * @throws Error with the reason
 */
function tryToReplace(file: string) {
  const stat = lstatSync(file, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink()) {
    throw new Error('it is a link: name the file that it leads to')
  }
  if (stat !== undefined && !stat.isFile()) {
    throw new Error('it is not a file')
  }
  // The folder decides whether a file may be replaced, so making one beside it shows
  // that.
  const probe = join(dirname(file), `.plant-store-${randomUUID()}`)
  closeSync(openSync(probe, 'wx'))
  rmSync(probe)
}
