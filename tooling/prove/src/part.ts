/** The input of one part of the proof. */
export interface Circumstances {
  /** The seed of random choices. */
  readonly seed: number
  /** The time (of performance.now()) from which a part begins nothing more. */
  readonly endAtMs: number
  /** A module that breaks the program on purpose. */
  readonly preload?: string | undefined
  /** The extent of each part: 1 for the whole proof, less for a quick one. */
  readonly scale: number
}

/** The result. */
export interface Finding {
  /** What was tried and how often, with figures. */
  readonly tried: string
  readonly times: number
  /** A line each. */
  readonly failures: readonly string[]
  /** Answered writes that are missing. Absent if the part does not look for them. */
  readonly lost?: number
  /** What could not be tried here, and why. */
  readonly skipped?: readonly string[]
}

export interface Part {
  readonly name: string
  /** Its share of the remaining time, relative to the parts still to come. */
  readonly share: number
  run(circumstances: Circumstances): Promise<Finding>
}

export const timeIsUp = ({ endAtMs }: Circumstances): boolean => performance.now() >= endAtMs

export const figure = (count: number): string => count.toLocaleString('en-US')
