import { cell, formatInteger, type Run } from './report.ts'
import type { Promised } from './targets.ts'

const width = 800
const labelWidth = 250
const barWidthMax = 400
const rowHeight = 30
const top = 58
const bottom = 42

const legend: readonly [Promised, string][] = [
  ['durable', 'on disk before the answer'],
  ['not durable', 'can be lost with the power'],
  ['nothing kept', 'no store at all'],
]

/**
 * Creates a second as bars, for 64 connections or else the most that were measured.
 *
 * @returns an SVG, or undefined when no creates were measured
 */
export function chart(run: Run): string | undefined {
  const counts = run.measurements.filter(each => each.scenario === 'creates').map(each => each.connections)
  if (counts.length === 0) return undefined
  const connections = counts.includes(64) ? 64 : Math.max(...counts)
  const bars = run.targets.flatMap(target => {
    const found = cell(run, 'creates', connections, target.name)
    return found ? [{ ...target, perSecond: found.perSecond }] : []
  })
  const most = Math.max(...bars.map(bar => bar.perSecond))
  const height = top + bars.length * rowHeight + bottom
  const title = `Creates a second, ${connections} ${connections === 1 ? 'connection' : 'connections'}`

  const rows = bars.map((bar, row) => {
    const y = top + row * rowHeight
    const length = Math.max(2, (bar.perSecond / most) * barWidthMax)
    return [
      `<text class="label${bar.name === 'ours' ? ' ours' : ''}" x="${labelWidth - 10}" y="${y + 16}">${text(bar.title)}</text>`,
      `<rect class="${shape(bar.promised)}${bar.name === 'ours' ? ' us' : ''}" x="${labelWidth}" y="${y + 2}" width="${length.toFixed(1)}" height="20" rx="2"/>`,
      `<text class="value${bar.name === 'ours' ? ' ours' : ''}" x="${(labelWidth + length + 8).toFixed(1)}" y="${y + 16}">${formatInteger(bar.perSecond)}</text>`,
    ].join('\n')
  })
  const keys = legend.map(([promised, meaning], index) => {
    const x = 16 + index * 262
    return `<rect class="${shape(promised)}" x="${x}" y="${height - 28}" width="22" height="12" rx="2"/>
<text class="key" x="${x + 30}" y="${height - 18}">${promised}: ${meaning}</text>`
  })

  // Colours of its own for light and dark, as it is shown on pages whose style it does not get.
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
<title id="title">${title}</title>
<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
.heading { font-size: 16px; font-weight: 600; }
.key, .sub { font-size: 11px; fill: #59636e; }
.label { text-anchor: end; }
.ours { font-weight: 600; }
.value { font-variant-numeric: tabular-nums; }
rect { stroke: #6e7781; stroke-width: 1.5; fill: #6e7781; }
#stripes line { stroke: #6e7781; stroke-width: 3; }
rect.us { stroke: #1a7f37; fill: #1a7f37; }
rect.striped { fill: url(#stripes); }
rect.hollow { fill: none; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .key, .sub { fill: #9198a1; }
  rect.us { stroke: #3fb950; fill: #3fb950; }
}
</style>
<defs><pattern id="stripes" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="7"/></pattern></defs>
<text class="heading" x="16" y="26">${title}</text>
<text class="sub" x="16" y="44">${text(`${run.machine}; median of ${run.rounds}, more is better`)}</text>
${rows.join('\n')}
${keys.join('\n')}
</svg>
`
}

const shape = (promised: Promised) =>
  promised === 'durable' ? 'solid' : promised === 'not durable' ? 'striped' : 'hollow'

const text = (plain: string) => plain.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
