import { fdatasyncSync } from 'node:fs'
import { detailedReasonOf } from './connection.ts'

export interface PassOutcome {
  /** Why pages could not be copied. None of them is counted as copied. */
  readonly failure: string | undefined
  /** Why pages that are counted as copied may not be on disk. */
  readonly loss: string | undefined
}

/** Copies pages of the WAL, and fsyncs the database. */
export function makePass(copy: () => void, descriptor: number): PassOutcome {
  return { failure: failureOf(copy), loss: failureOf(() => fdatasyncSync(descriptor)) }
}

function failureOf(work: () => void): string | undefined {
  try {
    work()
    return
  } catch (error) {
    return detailedReasonOf(error)
  }
}
