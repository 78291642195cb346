import { parseFigure } from './table.ts'

/** The colours of a picture, for pages with a light or with a dark background. */
export const themes = {
  light: { text: '#1f2328', faintText: '#59636e', ours: '#1a7f37', others: '#afb8c1' },
  dark: { text: '#f0f6fc', faintText: '#9198a1', ours: '#3fb950', others: '#57606a' },
}

const width = 720
const barsLeft = 280
const barWidthMax = 360
const rowHeight = 34
const top = 56

/**
 * Draws the creates of 64 clients as an SVG picture.
 *
 * @param page the benchmark's page, which has the figures
 */
export function drawCreates(page: string, theme: (typeof themes)['light']): string {
  // The first table is that of the creates.
  const [creates = ''] = page.split('## Reads')
  const bars = Array.from(
    creates.matchAll(/^\| ([^|]+) \| 64 \| ([\d,]+) \|/gm),
    ([, name = '', figure = '']) => ({ name, figure, rate: parseFigure(figure) }),
  )
  const longest = Math.max(...bars.map(({ rate }) => rate))
  const height = top + bars.length * rowHeight + 8

  const rows = bars.map(({ name, figure, rate }, index) => {
    const y = top + index * rowHeight
    const barWidth = Math.round((rate / longest) * barWidthMax)
    // Ours is the first.
    const [weight, color] = index === 0 ? ['bold', theme.ours] : ['normal', theme.others]
    return `<text x="${barsLeft - 12}" y="${y + 17}" text-anchor="end" font-weight="${weight}">${name}</text>
<rect x="${barsLeft}" y="${y}" width="${barWidth}" height="24" rx="3" fill="${color}"/>
<text x="${barsLeft + barWidth + 8}" y="${y + 17}" font-weight="${weight}">${figure}</text>`
  })

  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Creates a second of 64 clients" font-family="system-ui, sans-serif" font-size="13" fill="${theme.text}">
<text x="0" y="18" font-size="15" font-weight="bold">Plants stored a second, 64 clients</text>
<text x="0" y="38" fill="${theme.faintText}">durable: answered once the plant is on disk</text>
${rows.join('\n')}
</svg>
`
}
