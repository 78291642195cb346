import { spawnSync } from 'node:child_process'

/** Mounts a small disk in memory until it is disposed of. Returns why it cannot, if it cannot. */
export function mount(folder: string, size: string): Disposable | string {
  const run = (command: string, parameters: readonly string[]) =>
    spawnSync(command, parameters, { encoding: 'utf8', timeout: 10_000 })
  const { status, error, stderr } = run('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder])
  if (status !== 0) return `no disk can be mounted here (${error?.message ?? stderr.trim()})`
  return { [Symbol.dispose]: () => void run('umount', [folder]) }
}
