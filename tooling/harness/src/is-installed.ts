import { spawnSync } from 'node:child_process'

/** Returns whether this machine has a program. */
export function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version']).error === undefined
}
