import { type Labels, metrics, type Sample, type Samples } from './metrics.ts'

/**
 * Writes metrics in Prometheus' text format, and adds up the samples of several threads
 * that have the same labels.
 */
export function writeMetrics(samplesOfThreads: readonly Samples[]): string {
  const samplesByName = mergeByName(samplesOfThreads)
  const sections = Object.entries(metrics).map(([name, [type, help]]) => {
    const sums = new Map<string, number>()
    for (const { value, labels, suffix } of samplesByName.get(name) ?? []) {
      const key = `${name}${suffix}${writeLabels(labels)}`
      sums.set(key, (sums.get(key) ?? 0) + value)
    }
    const lines = [...sums].map(([key, value]) => `${key} ${value}\n`)
    return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
  })
  return sections.join('\n')
}

function mergeByName(
  samplesOfThreads: readonly Samples[],
): ReadonlyMap<string, readonly Sample[]> {
  const merged = new Map<string, Sample[]>()
  for (const [name, samples] of samplesOfThreads.flatMap(Object.entries)) {
    const known = merged.get(name) ?? []
    merged.set(name, [...known, ...samples])
  }
  return merged
}

function writeLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    const text = escapeLabel(`${value}`)
    return `${name}="${text}"`
  })
  if (pairs.length === 0) {
    return ''
  }
  return `{${pairs.join()}}`
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}
