import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { start } from '../src/run.ts'

const newestTsc = join(import.meta.dirname, '../../../node_modules/typescript/bin/tsc')

/** Returns what a compiler says of files in a project, or why it says nothing. */
export async function compile(
  cwd: string,
  files: Readonly<Record<string, string>>,
  more: object,
  tsc = newestTsc,
) {
  for (const [file, code] of Object.entries(files)) {
    writeFileSync(join(cwd, file), code)
  }
  const strict = { target: 'es2022', module: 'nodenext', strict: true, noEmit: true }
  // Only the compiler's own declarations are trusted.
  const compilerOptions = { ...strict, skipDefaultLibCheck: true, ...more }
  const config = join(cwd, `tsconfig.${randomUUID()}.json`)
  writeFileSync(config, JSON.stringify({ compilerOptions, files: Object.keys(files) }))
  const args = [tsc, '--pretty', 'false', '-p', config]
  const running = start(process.execPath, args, { cwd })
  const { stdout } = await running.catch(error => ({
    stdout: error.stdout || `${error}`,
  }))
  return stdout
}
