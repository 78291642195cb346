import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const { platform, arch } = process
const [suffix, system] = platform === 'win32' ? ['.exe', 'win'] : ['', platform]
const cache = fileURLToPath(new URL('../node_modules/.cache', import.meta.url))

/** A program in a package of npm that is too large for every clone to fetch. */
function npmProgram(name: string, version: string, file: string) {
  const folder = `${cache}/${name.replace('/', '+')}-${version}`
  const path = `${folder}/node_modules/${name}/bin/${file}${suffix}`
  return {
    version,
    /** Where it is once it is fetched. */
    path,
    /** Fetches it from npm's registry, unless it is there. */
    async fetch() {
      if (existsSync(path)) {
        return path
      }
      console.error(`fetching ${name} ${version}`)
      const options = ['--no-save', '--no-audit', '--no-fund', '--loglevel=error']
      const install = ['install', '--prefix', folder, ...options, `${name}@${version}`]
      await promisify(execFile)('npm', install, { shell: platform === 'win32' })
      return path
    },
  }
}

const bunPlatform = platform === 'win32' ? 'windows' : platform
const bunArch = arch === 'arm64' ? 'aarch64' : arch
export const bun = npmProgram(`@oven/bun-${bunPlatform}-${bunArch}`, '1.4.5', 'bun')

/** Another version of Node. */
export const nodeOf = (version: string) =>
  npmProgram(`node-${system}-${arch}`, version, 'node')
