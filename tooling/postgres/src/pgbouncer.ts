import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { freePort } from './index.ts'

/** Whether pgbouncer is installed. */
export const hasPgbouncer = spawnSync('pgbouncer', ['--version']).status === 0

/**
 * Starts a pgbouncer before a server. It lets everybody in, as the user of the server's URL.
 *
 * @param settings such as `{ pool_mode: 'transaction' }`
 */
export async function startPgbouncer(
  serverUrl: string,
  settings: Readonly<Record<string, string>>,
): Promise<{ url: string } & AsyncDisposable> {
  const url = new URL(serverUrl)
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-pgbouncer-'))
  const file = join(folder, 'pgbouncer.ini')
  const port = await freePort()
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: `${port}`,
    unix_socket_dir: '',
    auth_type: 'any',
    ...settings,
  }
  writeFileSync(
    file,
    [
      '[databases]',
      `* = host=${url.hostname} port=${url.port} user=${url.username} password=${url.password}`,
      '[pgbouncer]',
      ...Object.entries(all).map(([name, value]) => `${name} = ${value}`),
      '',
    ].join('\n'),
  )
  // It refuses to run as root.
  for (const path of [folder, file]) chmodSync(path, 0o755)
  const user = userInfo().uid === 0 ? ['--user=nobody'] : []
  const child = spawn('pgbouncer', [...user, file], { stdio: ['ignore', 'ignore', 'pipe'] })
  await listening(child)

  url.port = `${port}`
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      rmSync(folder, { recursive: true })
    },
  }
}

async function listening(child: ChildProcess): Promise<void> {
  let log = ''
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(`pgbouncer does not start:\n${log}`)))
  const up = new Promise<void>(resolve => {
    child.stderr?.on('data', chunk => {
      log += chunk
      if (log.includes('process up')) resolve()
    })
  })
  await Promise.race([up, ended])
  ended.catch(() => {})
}
