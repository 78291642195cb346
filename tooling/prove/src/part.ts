/** What one part of the proof is given. */
export interface Circumstances {
  /** Random choices follow from it. */
  readonly seed: number
  /** The moment (of performance.now()) from which a part begins nothing more. */
  readonly endAtMs: number
  /** A module that breaks the program on purpose. */
  readonly preload?: string | undefined
  /** How much of each thing is tried: 1 for the whole proof, less where it is to be quick. */
  readonly scale: number
}

/** What it came to. */
export interface Finding {
  /** What was tried, and how often, in words with figures. */
  readonly tried: string
  readonly times: number
  /** A line each. */
  readonly failures: readonly string[]
  /** Writes that were answered with success and are not there. Absent where the part does not look for them. */
  readonly lost?: number
  /** What could not be tried here, and why. */
  readonly skipped?: readonly string[]
}

export interface Part {
  readonly name: string
  /** How much it gets of the time that is left, beside the shares of the parts that are still to come. */
  readonly share: number
  run(circumstances: Circumstances): Promise<Finding>
}

export const timeIsUp = ({ endAtMs }: Circumstances): boolean => performance.now() >= endAtMs

export const figure = (count: number): string => count.toLocaleString('en-US')
