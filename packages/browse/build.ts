import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const dist = join(import.meta.dirname, 'dist')
await build({
  entryPoints: { page: join(import.meta.dirname, 'src/main.ts') },
  outdir: dist,
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2023',
})
for (const file of ['browse.html', 'page.css']) {
  copyFileSync(join(import.meta.dirname, 'src', file), join(dist, file))
}
// The server sends these to clients that accept gzip.
for (const file of readdirSync(dist)) {
  writeFileSync(
    join(dist, `${file}.gz`),
    gzipSync(readFileSync(join(dist, file)), { level: 9 }),
  )
}
