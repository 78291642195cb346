import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { termsOf } from './terms.ts'

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
  for (const [name, folder] of Object.entries(folders)) cpSync(folder, `dist/${name}`, { recursive: true })
  writeFileSync('dist/third-party.txt', termsOf(metafile))
}
