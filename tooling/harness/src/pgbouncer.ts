import { chmodSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { isInstalled } from './is-installed.ts'
import { freePort } from './ports.ts'
import { launch } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './until.ts'

/** Whether pgbouncer is installed. */
export const hasPgbouncer = isInstalled('pgbouncer')

/**
 * Starts a pgbouncer before a server. It lets everybody in, as the user of the server's
 * URL.
 *
 * @param settings such as `{ pool_mode: 'transaction' }`
 */
export async function startPgbouncer(
  serverUrl: string,
  settings: Readonly<Record<string, string>>,
): Promise<{ url: string } & AsyncDisposable> {
  const url = new URL(serverUrl)
  const folder = temporaryFolder()
  const file = join(folder.path, 'pgbouncer.ini')
  const port = await freePort()
  const more = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`)
  writeFileSync(
    file,
    `[databases]
* = host=${url.hostname} port=${url.port} user=${url.username} password=${url.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
${more.join('')}`,
  )
  // It refuses to run as root.
  for (const path of [folder.path, file]) {
    chmodSync(path, 0o755)
  }
  const user = userInfo().uid === 0 ? ['--user=nobody'] : []
  const { PATH } = process.env
  const bouncer = launch(['pgbouncer', ...user, file], { environment: { PATH } })
  const up = until('pgbouncer', () => bouncer.errors().includes('process up'))
  await Promise.race([up, bouncer.ended.then(bouncer.assertRunning)])

  url.port = `${port}`
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      await bouncer[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}
