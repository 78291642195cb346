import { spawnSync } from 'node:child_process'
import {
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import {
  freePort,
  hasStrace,
  isInstalled,
  launch,
  mayStartTraced,
  noTracer,
  startServer,
  until,
} from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { describe, expect, onTestFinished, test } from 'vitest'
import { run } from '../src/run.ts'
import {
  assertCreates,
  assertReads,
  canRelease,
  succeeds,
  unpackRelease,
} from './machine.ts'

const hasSystemd = isInstalled('systemd-analyze')
const token = 'a-token-of-the-environment-file'
const units = [
  'plant-store.service',
  'plant-store-backup.service',
  'plant-store-backup.timer',
]

describe('the units', needs('systemd-analyze', canRelease && hasSystemd), () => {
  test('are right, where the release folder is their /opt/plant-store', () => {
    const root = temporaryFolder()
    const folder = unpackRelease(join(root, 'opt/plant-store'))
    cpSync('/usr/lib/systemd/system', join(root, 'usr/lib/systemd/system'), {
      recursive: true,
      verbatimSymlinks: true,
    })
    for (const unit of units) {
      cpSync(join(folder, unit), join(root, 'etc/systemd/system', unit))
    }
    const verify = [
      'verify',
      '--man=no',
      '--recursive-errors=no',
      `--root=${root}`,
      ...units,
    ]
    const { status, stderr } = spawnSync('systemd-analyze', verify, { encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })

  test('leave no more open than 1.5 of 10, by the count of systemd', () => {
    const folder = unpackRelease(temporaryFolder())
    for (const unit of units.filter(each => each.endsWith('.service'))) {
      const security = [
        'security',
        '--offline=true',
        '--no-pager',
        '--threshold=15',
        join(folder, unit),
      ]
      const { status, stdout } = spawnSync('systemd-analyze', security, {
        encoding: 'utf8',
      })
      console.log(stdout.trim().split('\n').at(-1))
      expect(status, stdout).toBe(0)
    }
  })

  test(
    'allow every call of the kernel that the server makes',
    needs('strace', hasStrace),
    async context => {
      if (!mayStartTraced()) {
        return context.skip(noTracer)
      }
      const place = temporaryFolder()
      const folder = unpackRelease(join(place, 'plant-store'))
      const file = join(folder, 'calls')
      // SQLite makes other calls for root.
      const nobody = 65_534
      const isRoot = process.getuid?.() === 0
      if (isRoot) {
        for (const path of [place, folder]) {
          chownSync(path, nobody, nobody)
        }
      }
      const become = [`--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups']
      // -D: the server is our child, and the tracer is not.
      const serve = [join(folder, 'bin/plant-store'), 'serve'] as const
      const traced = ['/usr/bin/strace', ...['-D', '-f', '-o', file], ...serve] as const
      const command = isRoot
        ? (['/usr/bin/setpriv', ...become, ...traced] as const)
        : traced
      await using server = await startServer({
        command,
        folder,
        environment: {
          ACCESS_TOKENS: token,
          // Nobody is there. The name is looked up.
          OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:9',
        },
      })
      await assertCreates(server.url, token)
      await assertReads(server.url, token)
      expect(await server.end('SIGTERM')).toBe(0)
      const calls = () => readFileSync(file, 'utf8')
      await until('the tracer to end', () =>
        new RegExp(`^${server.pid} +\\+\\+\\+`, 'm').test(calls()),
      )

      const unit = readFileSync(join(folder, 'plant-store.service'), 'utf8')
      const settings = (name: string) =>
        [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(
          ([, value]) => value as string,
        )
      const allowed = new Set<string>()
      for (const filter of settings('SystemCallFilter')) {
        for (const name of expand(filter.replace('~', '').split(' '))) {
          if (filter.startsWith('~')) {
            allowed.delete(name)
          } else {
            allowed.add(name)
          }
        }
      }
      const made = (pattern: RegExp) => {
        const matches = calls().matchAll(pattern)
        return new Set(Array.from(matches, ([, name = '']) => name))
      }
      const names = made(/^\d+ +(\w+)\(/gm)
      expect(names).toContain('fsync')
      const refused = [...names].filter(name => !allowed.has(name))
      expect(refused).toEqual([])
      const families = settings('RestrictAddressFamilies').flatMap(value =>
        value.split(' '),
      )
      expect(
        [...made(/\bsocket\((\w+)/g)].filter(family => !families.includes(family)),
      ).toEqual([])
    },
  )
})

/** Returns the calls in a filter's groups. */
function expand(names: readonly string[]): readonly string[] {
  return names.flatMap(name => {
    if (!name.startsWith('@')) {
      return [name]
    }
    const listed = run('systemd-analyze', 'syscall-filter', '--no-pager', name)
      .split('\n')
      .slice(1)
    return expand(
      listed
        .map(line => line.trim())
        .filter(line => line !== '' && !line.startsWith('#')),
    )
  })
}

const hasNspawn = isInstalled('systemd-nspawn')
/**
 * systemd as the first process of a container: this machine's programs, and nothing else
 * of it.
 */
const boot = [
  '--directory=/',
  '--volatile=yes',
  '--register=no',
  '--keep-unit',
  '--quiet',
  '--boot',
] as const
const kernel = [
  'systemd.firstboot=off',
  'systemd.log_target=console',
  'systemd.show_status=no',
] as const
const mayBoot = () =>
  succeeds('systemd-nspawn', ...boot, 'systemd.unit=exit.target', ...kernel)

/** The units in a booted container, with the server on a port of this machine. */
async function bootUnits(unit: string, others: Readonly<Record<string, string>> = {}) {
  const place = temporaryFolder()
  const folder = unpackRelease(join(place, 'plant-store'))
  const state = join(place, 'state')
  mkdirSync(state)
  const port = await freePort()
  const setEnvironment = (more: string) =>
    writeFileSync(
      join(place, 'environment'),
      `PORT=${port}\nACCESS_TOKENS=${token}\n${more}`,
    )
  setEnvironment('')
  for (const [name, text] of Object.entries(others)) {
    mkdirSync(join(place, 'units', dirname(name)), { recursive: true })
    writeFileSync(join(place, 'units', name), text)
  }
  const binds = [
    `--bind-ro=${folder}:/opt/plant-store`,
    ...units.map(each => `--bind-ro=${folder}/${each}:/etc/systemd/system/${each}`),
    ...Object.keys(others).map(
      each => `--bind-ro=${place}/units/${each}:/etc/systemd/system/${each}`,
    ),
    `--bind-ro=${join(place, 'environment')}:/etc/plant-store.env`,
    // Where the state of dynamic users is.
    `--bind=${state}:/var/lib/private`,
  ]
  const options = [`--machine=plant-store-test-${port}`, '--console=read-only', ...binds]
  const { PATH } = process.env
  const machine = launch(
    ['systemd-nspawn', ...boot, ...options, `systemd.unit=${unit}`, ...kernel],
    {
      environment: { PATH },
      lastSignal: 'SIGTERM',
    },
  )
  // Killed, it would leave its systemd behind.
  onTestFinished(async () => {
    await machine.end('SIGTERM')
  })
  const url = `http://127.0.0.1:${port}`
  const isServing = async () => {
    machine.assertRunning()
    return (await fetch(`${url}/readyz`)).ok
  }
  await until('the server', isServing, 30_000)
  return { machine, folder, state, url, isServing, setEnvironment }
}

/** Returns a unit that checks a file of settings, as docs/install.md says. */
function checkUnit(environmentFile: string): string {
  const page = readFileSync(new URL('../../../docs/install.md', import.meta.url), 'utf8')
  const [command = ''] = /^systemd-run .*serve --check.*$/m.exec(page) ?? []
  const ofFile = command.replace('/etc/plant-store.env', environmentFile)
  const place = '/var/lib/private'
  return [
    '[Unit]',
    'Requires=dbus.service',
    'After=dbus.service',
    '[Service]',
    'Type=oneshot',
    `ExecStart=/bin/sh -c '${ofFile} > ${place}/part 2>&1; echo "exit $$?" >> ${place}/part; mv ${place}/part ${place}/checked'`,
    '',
  ].join('\n')
}

test(
  'systemd starts it, restarts it after a kill, and stops it in order',
  needs('systemd-nspawn', canRelease && hasNspawn),
  async context => {
    if (!mayBoot()) {
      return context.skip('not allowed: starting systemd in a container')
    }
    const { machine, folder, state, url, isServing } = await bootUnits('test.target', {
      'test.target': '[Unit]\nWants=plant-store.service check.service\n',
      'check.service': checkUnit('/etc/systemd/system/wrong.env'),
      'wrong.env': 'LOG_LEVEL=warn # quiet\n',
    })
    await assertCreates(url, token)
    const checked = join(state, 'checked')
    await until('the check', () => existsSync(checked), 30_000)
    expect(readFileSync(checked, 'utf8')).toMatch(
      /LOG_LEVEL must be one of .*\nexit 1\n$/,
    )

    const data = join(state, 'plant-store')
    const { uid, mode } = statSync(data)
    expect(mode & 0o777).toBe(0o700)
    expect(globSync('*', { cwd: data })).toContain('plants.db')
    for (const file of globSync('*', { cwd: data })) {
      expect(statSync(join(data, file)).mode & 0o777, file).toBe(0o600)
    }
    // Root's commands work beside it, and leave it its files.
    const store = { DATABASE_URL: `file:${join(data, 'plants.db')}` }
    const create = ['token', 'create', '--name', 'shop'] as const
    await using command = launch([join(folder, 'bin/plant-store'), ...create], {
      environment: store,
    })
    expect(await command.ended).toBe(0)
    await assertReads(url, command.output().trim())
    for (const file of globSync('*', { cwd: data })) {
      expect(statSync(join(data, file)).uid, file).toBe(uid)
    }

    const [first] = processesOf(uid)
    // A user of its own, without a right, behind a filter.
    expect(uid).toBeGreaterThanOrEqual(61_184)
    expect(first?.status).toMatch(/^CapBnd:\t0+$/m)
    expect(first?.status).toMatch(/^NoNewPrivs:\t1$/m)
    expect(first?.status).toMatch(/^Seccomp:\t2$/m)

    process.kill(first?.pid as number, 'SIGKILL')
    const hasNext = async () => {
      const isGone = processesOf(uid).every(({ pid }) => pid !== first?.pid)
      return isGone && isServing()
    }
    await until('the next server', hasNext, 30_000)
    await assertReads(url, token)

    await machine.end('SIGTERM')
    expect(machine.output()).toMatch(
      /plant-store\.service: Main process exited, code=killed, status=9/,
    )
    expect(
      machine.output().match(/plant-store\.service: Deactivated successfully/g),
    ).toHaveLength(1)
  },
)

test(
  'a timer makes backups, keeps the newest, and a failed one shows',
  needs('systemd-nspawn', canRelease && hasNspawn),
  async context => {
    if (!mayBoot()) {
      return context.skip('not allowed: starting systemd in a container')
    }
    const { machine, folder, state, url, setEnvironment } = await bootUnits(
      'test.target',
      {
        'test.target': '[Unit]\nWants=plant-store.service plant-store-backup.timer\n',
        // A backup starts every three seconds. If it started more often, systemd would
        // refuse to start the service.
        'plant-store-backup.timer.d/test.conf':
          '[Timer]\nOnCalendar=\nOnCalendar=*:*:0/3\nAccuracySec=100ms\n',
      },
    )
    const backups = join(state, 'plant-store-backups')
    const made = () => globSync('plants.db-*.backup', { cwd: backups }).sort()
    const lastBackup = async () => {
      const answer = await fetch(`${url}/metrics`, {
        headers: { authorization: `Bearer ${token}` },
      })
      const [, value] =
        /^plant_store_last_backup_timestamp_seconds (\S+)$/m.exec(await answer.text()) ??
        []
      return Number(value)
    }
    const failures = () =>
      machine
        .output()
        .match(/plant-store-backup\.service: Failed with result 'exit-code'/g)?.length ??
      0

    await until('a backup', () => made().length > 0, 30_000)
    // The timer may begin before the server has made the store, if the machine is busy.
    const failuresAtFirst = failures()
    await assertCreates(url, token)
    const before = made().length
    await until('the next backup', () => made().length > before + 1, 30_000)
    const newest = join(backups, made().at(-1) as string)
    await using check = launch([join(folder, 'bin/plant-store'), 'check', newest])
    expect(await check.ended).toBe(0)
    expect(check.output()).toMatch(/: 1 plant\b.* intact\n$/)
    const { uid, mode } = statSync(newest)
    expect(uid).toBe(statSync(join(state, 'plant-store')).uid)
    expect(mode & 0o777).toBe(0o600)
    expect(Date.now() / 1000 - (await lastBackup())).toBeLessThan(30)
    expect(failures()).toBe(failuresAtFirst)

    // These are the rest of a killed backup, and the backups of many nights.
    const then = Date.now() / 1_000 - 2 * 86_400
    const partOfBackup = '.plant-store-0123456789ab.part'
    const oldFiles = [partOfBackup]
    for (let day = 10; day < 30; day++) {
      oldFiles.push(`plants.db-2020-01-${day}T031700Z.backup`)
    }
    for (const name of oldFiles) {
      copyFileSync(newest, join(backups, name))
      chownSync(join(backups, name), uid, uid)
      utimesSync(join(backups, name), then, then)
    }
    await until('the old ones to be gone', () => made().length === 14, 30_000)
    expect(readdirSync(backups)).not.toContain(partOfBackup)

    setEnvironment('DATABASE_URL=file:/var/lib/plant-store/none.db\n')
    await until('a failed backup', () => failures() > failuresAtFirst, 30_000)
    const [last, kept] = [await lastBackup(), made()]
    const failed = failures()
    await until('another one', () => failures() > failed, 30_000)
    expect([await lastBackup(), made()]).toEqual([last, kept])
    // The alert's expression, as if the nights had passed: its own test has the rule.
    expect(Date.now() / 1000 - last).toBeGreaterThan(3)

    setEnvironment('')
    await until('the next good one', async () => (await lastBackup()) > last, 30_000)
  },
)

function processesOf(uid: number): readonly { pid: number; status: string }[] {
  return globSync('/proc/[0-9]*/status').flatMap(path => {
    try {
      const status = readFileSync(path, 'utf8')
      return status.includes(`\nUid:\t${uid}\t`)
        ? [{ pid: Number(path.split('/')[2]), status }]
        : []
    } catch {
      // It has ended.
      return []
    }
  })
}
