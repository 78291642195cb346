import { fetchProgram, type NpmProgram, pathOf } from './npm-program.ts'

const isWindows = process.platform === 'win32'
const node = (version: string): NpmProgram => ({
  package: `node-${isWindows ? 'win' : process.platform}-${process.arch}`,
  version,
  megabytes: 50,
  file: `bin/node${isWindows ? '.exe' : ''}`,
})

/** Returns the path of another version of Node after it is fetched. */
export const nodeProgram = (version: string): string => pathOf(node(version))

/** Fetches a version of Node from npm's registry, unless it is installed. */
export const fetchNode = (version: string): string => fetchProgram(node(version))
