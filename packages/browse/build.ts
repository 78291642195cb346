import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const src = join(import.meta.dirname, 'src')
const dist = join(import.meta.dirname, 'dist')
await build({
  entryPoints: [
    { in: join(src, 'main.ts'), out: 'page' },
    { in: join(src, 'page.css'), out: 'page' },
  ],
  outdir: dist,
  // The sources of our packages need no build before this one.
  conditions: ['plant-store-source'],
  bundle: true,
  minify: true,
  charset: 'utf8',
  format: 'esm',
  platform: 'browser',
  // Browsers read and write exact integers by themselves. Knip does not see that the
  // client then imports this file, so `knip.json` names it as an entry.
  alias: { '@plant-store/json': join(src, 'json.ts') },
  target: 'es2024',
})
copyFileSync(join(src, 'browse.html'), join(dist, 'browse.html'))
// The server sends these to clients that accept gzip.
for (const file of ['browse.html', 'page.css', 'page.js']) {
  writeFileSync(
    join(dist, `${file}.gz`),
    gzipSync(readFileSync(join(dist, file)), { level: 9 }),
  )
}
