import { spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, isInstalled, launch, until } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, onTestFinished, test } from 'vitest'
import { run } from '../src/run.ts'
import {
  assertReads,
  assertStores,
  canRelease,
  ended,
  succeeds,
  unpackRelease,
} from './machine.ts'

const units = [
  'plant-store.service',
  'plant-store-backup.service',
  'plant-store-backup.timer',
]
const analyzed = needs('systemd-analyze', canRelease && isInstalled('systemd-analyze'))
const analyze = (...args: readonly string[]) =>
  spawnSync('systemd-analyze', args, { encoding: 'utf8' })

test('the units are right, where the folder is their /opt/plant-store', analyzed, () => {
  const root = temporaryFolder()
  const folder = unpackRelease(join(root, 'opt/plant-store'))
  const system = 'usr/lib/systemd/system'
  cpSync(`/${system}`, join(root, system), { recursive: true, verbatimSymlinks: true })
  for (const unit of units) {
    cpSync(join(folder, unit), join(root, 'etc/systemd/system', unit))
  }
  const options = ['--man=no', '--recursive-errors=no', `--root=${root}`]

  const { status, stderr } = analyze('verify', ...options, ...units)

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})

test.for(units.filter(unit => unit.endsWith('.service')))(
  'systemd counts at most 1.5 of 10 for what %s leaves open',
  analyzed,
  unit => {
    const file = join(unpackRelease(temporaryFolder()), unit)
    const options = ['--offline=true', '--threshold=15']

    const { status, stdout } = analyze('security', ...options, file)

    expect(status, stdout).toBe(0)
  },
)

const token = 'a-token-of-the-environment-file'

/** Waits until a server is ready. */
const ready = (url: string) =>
  until('the server', async () => (await fetch(`${url}/readyz`)).ok, 30_000)

test(
  'the processes that the units start serve, back up and stop',
  needs('Debian (dpkg-query)', canRelease),
  async () => {
    const place = temporaryFolder()
    const folder = unpackRelease(join(place, 'plant-store'))
    const port = `${await freePort()}`
    const processOf = (unit: string) => {
      const text = readFileSync(join(folder, unit), 'utf8')
        .replaceAll('/opt/plant-store', folder)
        .replaceAll('/var/lib', place)
      const environment = Object.fromEntries(
        Array.from(text.matchAll(/^Environment=(\w+)=(.*)$/gm), row => row.slice(1)),
      )
      const [, program = '', args = ''] = /^ExecStart=(\S+) (.*)$/m.exec(text) ?? []
      const settings = { ...environment, PORT: port, ACCESS_TOKENS: token }
      return [[program, ...args.split(' ')], { environment: settings }] as const
    }
    mkdirSync(join(place, 'plant-store-backups'))
    await using server = launch(...processOf('plant-store.service'))
    const url = `http://127.0.0.1:${port}`
    await ready(url)
    await assertStores(url, token)

    const copied = await ended(...processOf('plant-store-backup.service'))
    const ending = await server.end('SIGTERM')

    expect(copied).toMatchObject({ code: 0, stderr: '' })
    expect(globSync('plant-store-backups/*.backup', { cwd: place })).toHaveLength(1)
    expect(ending).toBe(0)
  },
)

/**
 * systemd as the first process of a container: this machine's programs, and nothing else
 * of it.
 */
const container = (binds: Readonly<Record<string, string>>, target: string) =>
  [
    ...['systemd-nspawn', '--directory=/', '--volatile=yes', '--register=no'],
    ...['--keep-unit', '--quiet', '--boot', '--console=read-only'],
    ...Object.entries(binds).map(([to, from]) => `--bind-ro=${from}:${to}`),
    ...[`systemd.unit=${target}`, 'systemd.firstboot=off'],
  ] as unknown as [string, ...string[]]

test(
  'systemd starts the server, and starts it again after a kill',
  needs('systemd-nspawn', canRelease && isInstalled('systemd-nspawn')),
  async context => {
    if (!succeeds(...container({}, 'exit.target'))) {
      return context.skip('not allowed: starting systemd in a container')
    }
    const place = temporaryFolder()
    const folder = unpackRelease(join(place, 'plant-store'))
    const port = await freePort()
    const environment = join(place, 'environment')
    writeFileSync(environment, `PORT=${port}\nACCESS_TOKENS=${token}\n`)
    const service = '/etc/systemd/system/plant-store.service'
    const binds = {
      '/opt/plant-store': folder,
      [service]: join(folder, 'plant-store.service'),
      '/etc/plant-store.env': environment,
    }
    const { PATH } = process.env
    const machine = launch(container(binds, 'plant-store.service'), {
      ...{ environment: { PATH }, lastSignal: 'SIGTERM' },
    })
    // Killed, it would leave its systemd behind.
    onTestFinished(async () => void (await machine.end('SIGTERM')))
    const url = `http://127.0.0.1:${port}`
    await ready(url)
    await assertStores(url, token)

    const childOf = (parent: number, what: string) =>
      Number(run('pgrep', '--parent', `${parent}`, '--full', what))
    const systemd = childOf(machine.pid, 'systemd')
    process.kill(childOf(systemd, 'main.js serve'), 'SIGKILL')
    await until('its end', async () => !(await fetch(url).catch(() => false)), 30_000)

    await ready(url)
    await assertReads(url, token)
  },
)
