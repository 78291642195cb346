import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** 103 MB, which not every clone is to fetch. */
const version = '1.4.5'
const isWindows = process.platform === 'win32'
const package_ = `@oven/bun-${isWindows ? 'windows' : process.platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}`
const folder = fileURLToPath(new URL(`../node_modules/.cache/bun-${version}`, import.meta.url))

/** Where Bun is once it was fetched. */
export const bunProgram = `${folder}/node_modules/${package_}/bin/bun${isWindows ? '.exe' : ''}`

/** Fetches Bun from npm's registry, unless it is there. */
export function fetchBun(): string {
  if (existsSync(bunProgram)) return bunProgram
  console.error(`fetching Bun ${version} (103 MB)`)
  const options = ['--no-save', '--no-audit', '--no-fund', '--loglevel=error']
  execFileSync('npm', ['install', '--prefix', folder, ...options, `${package_}@${version}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: isWindows,
  })
  return bunProgram
}
