import { fetchProgram, type NpmProgram, pathOf } from './npm-program.ts'

const isWindows = process.platform === 'win32'
const bun: NpmProgram = {
  package: `@oven/bun-${isWindows ? 'windows' : process.platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}`,
  version: '1.4.5',
  megabytes: 103,
  file: `bin/bun${isWindows ? '.exe' : ''}`,
}

/** The path of Bun after it is fetched. */
export const bunProgram = pathOf(bun)

/** Fetches Bun from npm's registry, unless it is installed. */
export const fetchBun = (): string => fetchProgram(bun)
