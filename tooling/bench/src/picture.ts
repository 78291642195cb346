import type { Promised } from './contestants.ts'
import { formatInteger } from './table.ts'

export interface Bar {
  readonly title: string
  readonly promised: Promised
  readonly value: number
}

/** Returns bars as an SVG, the first one as ours. It brings its own colours, for light and dark pages. */
export function picture(title: string, bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(bar => bar.value))
  const rows = bars.map(({ title, promised, value }, row) => {
    const length = Math.max(2, (value / most) * 360)
    return `<g class="${row === 0 ? 'ours' : promised.replace(' ', '-')}" transform="translate(0 ${46 + row * 30})">
<text x="330" y="16" text-anchor="end">${title} (${promised})</text>
<rect x="340" y="2" width="${length.toFixed()}" height="20" rx="2"/>
<text x="${(348 + length).toFixed()}" y="16">${formatInteger(value)}</text>
</g>`
  })
  const height = 56 + bars.length * 30
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 ${height}" role="img" aria-labelledby="title">
<title id="title">${title}</title>
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.heading { font-size: 16px; font-weight: 600; }
rect { fill: #6e7781; stroke: #6e7781; }
.ours text { font-weight: 600; }
.ours rect { fill: #1a7f37; stroke: #1a7f37; }
.not-durable rect { fill-opacity: 0.4; }
.nothing-kept rect { fill-opacity: 0; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .ours rect { fill: #3fb950; stroke: #3fb950; }
}
</style>
<text class="heading" x="16" y="26">${title}</text>
${rows.join('\n')}
</svg>
`
}
