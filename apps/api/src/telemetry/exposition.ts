import { type Labels, type MetricName, metrics, type Samples, typeOf } from './metrics.ts'

/**
 * Writes metrics in Prometheus' text format, and adds up the samples of several threads
 * that have the same labels.
 */
export function writeMetrics(samplesOfThreads: readonly Samples[]): string {
  const sections = Object.entries(metrics).map(([name, help]) => {
    const sums = new Map<string, number>()
    const samples = samplesOfThreads.flatMap(each => each[name as MetricName] ?? [])
    for (const { value, labels, suffix } of samples) {
      const key = `${name}${suffix}${writeLabels(labels)}`
      sums.set(key, (sums.get(key) ?? 0) + value)
    }
    const lines = [...sums].map(([key, value]) => `${key} ${value}\n`)
    return `# HELP ${name} ${help}\n# TYPE ${name} ${typeOf(name)}\n${lines.join('')}`
  })
  return sections.join('\n')
}

function writeLabels(labels: Labels) {
  const pairs = Object.entries(labels).map(([name, value]) => {
    const text = `${value}`.replaceAll(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')
    return `${name}="${text}"`
  })
  return pairs.length === 0 ? '' : `{${pairs.join()}}`
}
