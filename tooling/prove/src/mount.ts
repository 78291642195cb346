import { spawnSync } from 'node:child_process'

/** Mounts a small disk in memory until it is disposed of. */
export interface Mounted extends Disposable {
  makeReadOnly(): void
}

/** Returns why a disk cannot be mounted, if it cannot. */
export function mount(folder: string, size: string): Mounted | string {
  const run = (command: string, parameters: readonly string[]) => {
    const { status, error, stderr } = spawnSync(command, parameters, { encoding: 'utf8', timeout: 10_000 })
    return status === 0 ? undefined : (error?.message ?? stderr.trim())
  }
  const refusal = run('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder])
  if (refusal !== undefined) return `no disk can be mounted here (${refusal})`
  return {
    makeReadOnly() {
      const failure = run('mount', ['-o', 'remount,ro', folder])
      if (failure !== undefined) throw new Error(failure)
    },
    [Symbol.dispose]() {
      run('umount', [folder])
    },
  }
}
