import type { Programs } from './programs.ts'

/** The input of one part of the proof. */
export interface Circumstances {
  /** The seed of random choices. */
  readonly seed: number
  /** The programs to try, perhaps broken on purpose. */
  readonly programs: Programs
  /** How much of everything is tried: 1 for the whole proof, less for a quick one. */
  readonly scale: number
}

/** The result. */
export interface Finding {
  /** Says what was tried and how often, with figures. */
  readonly tried: string
  readonly times: number
  /** One line for each failure. */
  readonly failures: readonly string[]
  /** Says what could not be tried here, and why. */
  readonly skipped?: readonly string[]
}

export type Part = (circumstances: Circumstances) => Promise<Finding>

export const figure = (count: number): string => count.toLocaleString('en-US')
