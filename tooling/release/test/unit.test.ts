import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { freePort, isInstalled, launch, until } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, onTestFinished, test } from 'vitest'
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
const analyze = (...args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, {
    encoding: 'utf8',
  })
  return { status, stderr, stdout }
}

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

    const { status, stdout } = analyze(
      'security',
      '--offline=true',
      '--threshold=15',
      file,
    )

    expect(status, stdout).toBe(0)
  },
)

/**
 * systemd as the first process of a container: this machine's programs, and nothing else
 * of it.
 */
const boot = [
  ...[
    '--directory=/',
    '--volatile=yes',
    '--register=no',
    '--keep-unit',
    '--quiet',
    '--boot',
  ],
] as const
const kernel = [
  ...['systemd.firstboot=off', 'systemd.log_target=console', 'systemd.show_status=no'],
] as const
const token = 'a-token-of-the-environment-file'

/** Returns a unit that checks a file of settings, as docs/install.md says. */
function checkUnit(environmentFile: string): string {
  const page = readFileSync(new URL('../../../docs/install.md', import.meta.url), 'utf8')
  const [command = ''] = /^systemd-run .*serve --check.*$/m.exec(page) ?? []
  const ofFile = command.replace('/etc/plant-store.env', environmentFile)
  const place = '/var/lib/private'
  const script = `${ofFile} > ${place}/part 2>&1; echo "exit $$?" >> ${place}/part; mv ${place}/part ${place}/checked`
  const unit = '[Unit]\nRequires=dbus.service\nAfter=dbus.service'
  return `${unit}\n[Service]\nType=oneshot\nExecStart=/bin/sh -c '${script}'\n`
}

test(
  'systemd starts the server, restarts it after a kill, backs it up and stops it',
  needs('systemd-nspawn', canRelease && isInstalled('systemd-nspawn')),
  async context => {
    if (!succeeds('systemd-nspawn', ...boot, 'systemd.unit=exit.target', ...kernel)) {
      return context.skip('not allowed: starting systemd in a container')
    }
    const place = temporaryFolder()
    const folder = unpackRelease(join(place, 'plant-store'))
    const state = join(place, 'state')
    const port = await freePort()
    mkdirSync(state)
    // Every three seconds. If it started more often, systemd would refuse to start it.
    const often = '[Timer]\nOnCalendar=\nOnCalendar=*:*:0/3\nAccuracySec=100ms\n'
    const files = {
      'plant-store.env': `PORT=${port}\nACCESS_TOKENS=${token}\n`,
      'systemd/system/test.target': `[Unit]\nWants=${units[0]} ${units[2]} check.service\n`,
      'systemd/system/check.service': checkUnit('/etc/systemd/system/wrong.env'),
      'systemd/system/wrong.env': 'LOG_LEVEL=warn # quiet\n',
      'systemd/system/plant-store-backup.timer.d.conf': often,
    }
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(place, name, '..'), { recursive: true })
      writeFileSync(join(place, name), text)
    }
    const drop = '/etc/systemd/system/plant-store-backup.timer.d/test.conf'
    const binds = [
      `--bind-ro=${folder}:/opt/plant-store`,
      ...units.map(unit => `--bind-ro=${folder}/${unit}:/etc/systemd/system/${unit}`),
      ...['test.target', 'check.service', 'wrong.env'].map(
        name => `--bind-ro=${place}/systemd/system/${name}:/etc/systemd/system/${name}`,
      ),
      `--bind-ro=${place}/systemd/system/plant-store-backup.timer.d.conf:${drop}`,
      `--bind-ro=${place}/plant-store.env:/etc/plant-store.env`,
      // Where the state of dynamic users is.
      `--bind=${state}:/var/lib/private`,
    ]
    const options = [
      `--machine=plant-store-test-${port}`,
      '--console=read-only',
      ...binds,
    ]
    const command = [
      'systemd-nspawn',
      ...boot,
      ...options,
      'systemd.unit=test.target',
    ] as const
    const { PATH } = process.env
    const machine = launch([...command, ...kernel], {
      ...{ environment: { PATH }, lastSignal: 'SIGTERM' },
    })
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
    const verdict = join(state, 'checked')
    await until('the check of settings', () => existsSync(verdict), 30_000)
    expect(readFileSync(verdict, 'utf8')).toMatch(/LOG_LEVEL must be .*\nexit 1\n$/)
    // Every call that these need passes the filter of the unit.
    await assertStores(url, token)

    const data = join(state, 'plant-store')
    const { uid, mode } = statSync(data)
    expect(mode & 0o777).toBe(0o700)
    // A user of its own, without a right, behind a filter.
    const [first] = processesOf(uid)
    expect(uid).toBeGreaterThanOrEqual(61_184)
    expect(first?.status).toMatch(
      /^CapBnd:\t0+$[\s\S]*^NoNewPrivs:\t1$[\s\S]*^Seccomp:\t2$/m,
    )
    // Root's commands work beside it, and leave it its files.
    const environment = { DATABASE_URL: `file:${join(data, 'plants.db')}` }
    const create = [
      join(folder, 'bin/plant-store'),
      'token',
      'create',
      '--name',
      'shop',
    ] as const
    const created = await ended(create, { environment })
    await assertReads(url, created.stdout.trim())
    for (const file of globSync('*', { cwd: data })) {
      const owner = statSync(join(data, file))
      expect([owner.uid, owner.mode & 0o777], file).toEqual([uid, 0o600])
    }

    const backups = join(state, 'plant-store-backups')
    const made = () => globSync('plants.db-*.backup', { cwd: backups }).sort()
    const before = made().length
    await until('backups', () => made().length > before + 1, 30_000)
    const newest = join(backups, `${made().at(-1)}`)
    const checked = await ended([join(folder, 'bin/plant-store'), 'check', newest])
    expect(checked.stdout).toMatch(/: 1 plant\b.* intact\n$/)
    expect(statSync(newest).uid).toBe(uid)

    // The backups began later.
    const serverPid = Math.min(...processesOf(uid).map(({ pid }) => pid))
    process.kill(serverPid, 'SIGKILL')
    const hasNext = async () =>
      processesOf(uid).every(({ pid }) => pid !== serverPid) && (await isServing())
    await until('the next server', hasNext, 30_000)
    await assertReads(url, token)
    await machine.end('SIGTERM')
    const output = machine.output()
    expect(output).toMatch(
      /plant-store\.service: Main process exited, code=killed, status=9/,
    )
    expect(output).toMatch(/plant-store\.service: Deactivated successfully/)
  },
)

function processesOf(uid: number): readonly { pid: number; status: string }[] {
  return globSync('/proc/[0-9]*/status').flatMap(path => {
    try {
      const status = readFileSync(path, 'utf8')
      const isOfUser = status.includes(`\nUid:\t${uid}\t`)
      return isOfUser ? [{ pid: Number(path.split('/')[2]), status }] : []
    } catch {
      // It has ended.
      return []
    }
  })
}
