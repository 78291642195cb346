import { type Labels, type Sample, sample } from './metrics.ts'

/** Counts values by the smallest bound that they do not exceed. */
export class Distribution {
  /** Reading a list of integers here and of fractions there would create objects. */
  readonly #bounds: Float64Array
  /** The values of each bound, and at last those beyond all bounds. */
  readonly #counts: number[]
  #count = 0
  #sum = 0

  /** @param bounds in ascending order */
  constructor(bounds: readonly number[]) {
    this.#bounds = Float64Array.from(bounds)
    this.#counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let bucket = 0
    while (value > (this.#bounds[bucket] ?? Number.POSITIVE_INFINITY)) {
      bucket++
    }
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#count++
    this.#sum += value
  }

  /** The number of values. */
  get count(): number {
    return this.#count
  }

  samples(labels: Labels = {}): readonly Sample[] {
    let valuesUpTo = 0
    const upperBounds = [...this.#bounds, '+Inf']
    // Buckets of Prometheus are cumulative.
    const buckets = upperBounds.map((le, at) => {
      valuesUpTo += this.#counts[at] ?? 0
      return sample(valuesUpTo, { ...labels, le }, '_bucket')
    })
    return [
      ...buckets,
      sample(this.#sum, labels, '_sum'),
      sample(this.#count, labels, '_count'),
    ]
  }
}
