import { fetchProgram, type NpmProgram, pathOf } from './npm-program.ts'

/** Contains litestream 0.3.13. There is none for Windows. */
const litestream: NpmProgram = {
  package: `@flydotio/litestream-${process.platform}-${process.arch}`,
  version: '1.0.1',
  megabytes: 10,
  file: 'litestream',
}

/** The path of litestream after it is fetched. */
export const litestreamProgram = pathOf(litestream)

/** Fetches litestream from npm's registry, unless it is installed. */
export const fetchLitestream = (): string => fetchProgram(litestream)
