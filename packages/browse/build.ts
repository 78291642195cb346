import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const src = join(import.meta.dirname, 'src')
const dist = join(import.meta.dirname, 'dist')
const { outputFiles } = await build({
  entryPoints: [
    { in: join(src, 'main.ts'), out: 'start' },
    { in: join(src, 'page.css'), out: 'page' },
  ],
  outdir: dist,
  // The sources of our packages need no build before this one.
  conditions: ['plant-store-source'],
  bundle: true,
  // The list is `chunk.js`. It fetches `forms.js` after the first row, which imports from
  // it what both need. As everything imports `main.ts`, it is no third file.
  splitting: true,
  chunkNames: '[name]',
  inject: [join(src, 'main.ts')],
  minify: true,
  charset: 'utf8',
  format: 'esm',
  platform: 'browser',
  // Browsers read and write exact integers by themselves. Knip does not see that the
  // client then imports this file, so `knip.json` names it as an entry.
  alias: { '@plant-store/json': join(src, 'json.ts') },
  target: 'es2024',
  write: false,
})

mkdirSync(dist)
write(
  'browse.html',
  readFileSync(join(src, 'browse.html'), 'utf8').replaceAll(/\n +/g, '\n'),
)
for (const { path, contents } of outputFiles) {
  // All that `start.js` does is to import `chunk.js`, as `browse.html` does.
  if (!path.endsWith('start.js')) {
    write(basename(path), contents)
  }
}

/** Writes a file of the page, and its gzip for clients that accept it. */
function write(name: string, content: string | Uint8Array): void {
  writeFileSync(join(dist, name), content)
  writeFileSync(join(dist, `${name}.gz`), gzipSync(content, { level: 9 }))
}
