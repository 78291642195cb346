import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Metafile } from 'esbuild'

const apiReference = join(
  fileURLToPath(import.meta.resolve('@plant-store/http/server')),
  '../../dist/docs',
)
const browsePage = fileURLToPath(import.meta.resolve('@plant-store/browse'))

/** The threads of each program, by file name. */
const threads = {
  'http-thread': join(import.meta.dirname, 'src/http/http-thread.ts'),
  'checkpointer-thread': fileURLToPath(
    import.meta.resolve('@plant-store/engine/checkpointer'),
  ),
  'writer-thread': fileURLToPath(import.meta.resolve('@plant-store/engine/writer')),
}

/** CommonJS libraries call `require`. */
const banner =
  "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url)"

/**
 * Bundles a program that serves, and its threads, into `dist` of the working directory.
 * Libraries that are not bundled would take several times the time and memory to load, in
 * every thread (docs/decisions/0008). It bundles the sources of our packages, so Node
 * needs the condition as well.
 */
export async function bundleProgram(main: string): Promise<void> {
  rmSync('dist', { recursive: true, force: true })
  const { metafile } = await build({
    entryPoints: { main, ...threads },
    bundle: true,
    conditions: ['plant-store-source'],
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    outdir: 'dist',
    sourcemap: true,
    metafile: true,
    // `third-party.txt` has all of them.
    legalComments: 'none',
    alias: { 'node:http': join(import.meta.dirname, 'node-http.cjs') },
    // A native library, and an option of pg that is not used.
    external: ['better-sqlite3', 'pg-native'],
    banner: { js: banner },
  })
  cpSync(apiReference, 'dist/docs', { recursive: true })
  cpSync(dirname(browsePage), 'dist/browse', { recursive: true })
  writeFileSync('dist/third-party.txt', termsOf(metafile))
}

/** Returns the licence terms of every bundled library. */
function termsOf({ outputs }: Metafile): string {
  const files = Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs))
  const folders = files.flatMap(
    file => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [],
  )
  return [...new Set(folders)]
    .map(termsOfLibrary)
    .sort()
    .join(`${'-'.repeat(80)}\n\n`)
}

/** @throws Error if the library names no licence */
function termsOfLibrary(folder: string): string {
  const manifest = readFileSync(join(folder, 'package.json'), 'utf8')
  const { name, version, license } = JSON.parse(manifest)
  if (license === undefined) {
    throw new Error(`${name} is bundled, and names no licence`)
  }

  // A library without a text has the licence's own.
  const texts = readdirSync(folder)
    .filter(file => /^(licen[cs]e|copying|notice)/i.test(file))
    .map(file => readFileSync(join(folder, file), 'utf8').trim())
  return [`${name} ${version} (${license})`, ...texts, ''].join('\n\n')
}
