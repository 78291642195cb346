import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Metafile } from 'esbuild'

/**
 * Bundles a program into `dist` of the working directory. Unbundled libraries would take several times the time and
 * memory to load, in every thread (docs/decisions/0008).
 *
 * @param entries the program and each of its threads, by file name
 * @param folders what is read beside the code, by folder name
 */
export async function bundle(
  entries: Readonly<Record<string, string>>,
  folders: Readonly<Record<string, string>> = {},
): Promise<void> {
  rmSync('dist', { recursive: true, force: true })
  const { metafile } = await build({
    entryPoints: entries,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    outdir: 'dist',
    sourcemap: true,
    metafile: true,
    // All of them, in a file of their own.
    legalComments: 'none',
    alias: { 'node:http': fileURLToPath(import.meta.resolve('./node-http.cjs')) },
    // A native library, and an option of pg that is not used.
    external: ['better-sqlite3', 'pg-native'],
    // For CommonJS libraries.
    banner: {
      js: "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url)",
    },
  })
  for (const [name, folder] of Object.entries(folders)) {
    cpSync(folder, `dist/${name}`, { recursive: true })
  }
  writeFileSync('dist/third-party.txt', termsOf(metafile))
}

/**
 * Returns the licence terms of every bundled library.
 *
 * @throws Error if one names no licence
 */
function termsOf({ outputs }: Metafile): string {
  const files = Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs))
  const folders = files.flatMap(
    file => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [],
  )
  return [...new Set(folders)]
    .map(folder => {
      const { name, version, license } = JSON.parse(
        readFileSync(join(folder, 'package.json'), 'utf8'),
      )
      const texts = readdirSync(folder)
        .filter(file => /^(licen[cs]e|copying|notice)/i.test(file))
        .map(file => readFileSync(join(folder, file), 'utf8').trim())
      // Some contain no text. Then the licence's own text applies.
      if (license === undefined) {
        throw new Error(`${name} is bundled, and names no licence`)
      }
      return [`${name} ${version} (${license})`, ...texts, ''].join('\n\n')
    })
    .sort()
    .join(`${'-'.repeat(80)}\n\n`)
}
