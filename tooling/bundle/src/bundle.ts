import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { termsOf } from './terms.ts'

/**
 * Bundles a program into `dist` of the working directory. Loaded from their own files, its libraries would take several
 * times as long and as much memory, in every thread (docs/decisions/0008).
 *
 * @param entries what is started, by the name of its file: the program, and each of its threads
 * @param folders what is read beside the code, by the name of its folder
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
    // Native, and an option of pg's that is not used.
    external: ['better-sqlite3', 'pg-native'],
    // For libraries that are CommonJS.
    banner: {
      js: "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url)",
    },
  })
  for (const [name, folder] of Object.entries(folders)) cpSync(folder, `dist/${name}`, { recursive: true })
  writeFileSync('dist/third-party.txt', termsOf(metafile))
}
