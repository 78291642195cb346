import { execFileSync, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { commandProgram } from '@plant-store/harness'
import { mayNotMount } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { countsInWords, Place } from './place.ts'

// What backup, restore and check say. The tests of the engine have what they do.

let place: Place
beforeEach(async () => {
  place = new Place()
  await place.load(0, 10)
})
afterEach(() => place[Symbol.asyncDispose]())

test('a backup, its check and its restore say what they did', async () => {
  await place.run('token create --name shop')
  const backup = await place.run('backup first.db')
  await place.load(10, 5)
  const check = await place.run('check')
  const report = await place.run('check --json')
  await using elsewhere = new Place('file:new/plants.db')
  copyFileSync(place.path('first.db'), elsewhere.path('first.db'))

  const restored = await elsewhere.run('restore first.db')
  const replaced = await place.run('restore first.db --force --json')

  const counts = countsInWords({ plants: 10, tokens: 1 })
  const contents = `${counts} in [\\d,]+ bytes, schema version \\d+`
  const store = place.store
  expect(backup.stdout).toMatch(
    new RegExp(`^first.db: ${contents} backed up from ${store}, and checked\n$`),
  )
  expect(check.stdout).toMatch(
    new RegExp(`^${store}: 15 plants.*: intact; last backup: [-\\d]+ [:\\d]+Z\n$`),
  )
  expect(JSON.parse(report.stdout)).toEqual({
    store,
    bytes: expect.any(Number),
    schemaVersion: expect.any(Number),
    ...(await place.counts()),
    plants: 15,
    intact: true,
    lastBackup: expect.stringMatching(/^2.*Z$/),
  })
  expect(restored.stdout).toMatch(
    new RegExp(
      `^${elsewhere.path('new/plants.db')}: ${contents} restored from first\\.db\n` +
        'There was no store before\\. Start the server with this DATABASE_URL\\.\n$',
    ),
  )
  expect(JSON.parse(replaced.stdout)).toMatchObject({
    store,
    plants: 10,
    revokedTokens: [],
    lostTokens: [],
  })
  expect(await place.count()).toBe(10)
})

test('a restore says which tokens it brings back, and which it loses', async () => {
  await place.run('token create --name shop')
  await place.run('backup backup.db')
  await place.run('token revoke shop')
  await place.run('token create --name later')

  const { stdout } = await place.run('restore backup.db --force')
  writeFileSync(place.store, 'damaged '.repeat(1_000))
  const overDamaged = await place.run('restore backup.db --force')

  expect(stdout).toMatch(
    /restored from backup\.db\nThese tokens were not in the replaced store and are valid again: shop\. To revoke one: plant-store token revoke <name>\nThese tokens are not in the backup and are lost: later\. To create one: plant-store token create --name <name>\nStart the server\.\n$/,
  )
  expect(overDamaged.stdout).toMatch(
    /restored from backup\.db\nThe replaced store could not be read: .*\nStart the server\.\n$/,
  )
})

test('no command replaces a store that a server has open', async () => {
  await place.run('backup first.db')
  const server = await place.serve()

  await place.fails('restore first.db --force', 4, /is in use: stop the server first\n$/)

  expect(await server.create(10_000)).toBe(200)
})

test('nothing is replaced by chance', async () => {
  writeFileSync(place.path('kept'), 'precious')

  await place.fails('backup kept', 1, /kept already exists: use --force to replace it/)
  await place.fails('backup data/store.db --force', 1, /is the store itself/)
  await place.fails('restore data/store.db', 1, /is the store itself/)
  const forced = await place.run('backup kept --force')
  await place.fails(
    'restore kept',
    1,
    /store\.db already exists: use --force to replace it and lose the changes since the backup\n$/,
  )

  expect(forced.code, forced.stderr).toBe(0)
})

describe('backup --keep', () => {
  let folder: string
  beforeEach(() => {
    folder = place.path('to/backups')
  })

  const nameOf = (year: number) => `store.db-${year}-01-01T000000Z.backup`

  /** Makes a backup of a store, the only one in the folder, as old as this. */
  async function backUpIn(year: number): Promise<void> {
    await place.run(`backup ${folder} --keep 1`)
    const [made = ''] = readdirSync(folder)
    renameSync(join(folder, made), join(folder, nameOf(year)))
  }

  test('keeps the newest backups of this store', async () => {
    await backUpIn(2020)
    const unrelated = ['store.db-before.backup', `${nameOf(2020)}.old`]
    // The clock was ahead once.
    for (const name of [...unrelated, nameOf(2021), nameOf(2022), nameOf(2999)]) {
      copyFileSync(join(folder, nameOf(2020)), join(folder, name))
    }

    const { stdout } = await place.run('backup to/backups --keep 3')

    expect(stdout).toMatch(
      /^to\/backups\/store\.db-\S+\.backup: 10 plants\b.* and checked; 2 older ones removed\n$/,
    )
    const kept = readdirSync(folder)
    const now = expect.stringMatching(
      /^store\.db-\d{4}-\d\d-\d\dT\d{6}Z-[\da-f]{8}\.backup$/,
    )
    const backups = kept.filter(name => !unrelated.includes(name))
    expect(kept).toEqual(expect.arrayContaining(unrelated))
    expect(backups.sort()).toEqual([nameOf(2022), now, nameOf(2999)])
    expect(statSync(folder).mode & 0o777).toBe(0o700)

    writeFileSync(place.store, 'no database'.repeat(1_000))
    await place.fails('backup to/backups --keep 1', 1, /could not be backed up/)
    expect(readdirSync(folder), 'after a failed backup').toHaveLength(kept.length)
  })

  test('is refused for a file, with --force and for no backup', async () => {
    const refused = /store\.db is a file: --keep takes a folder\n$/

    await place.fails('backup data/store.db --keep 1', 1, refused)
    await place.fails('backup a --keep 1 --force', 2, /cannot be used with/)
    await place.fails('backup a --keep 0', 2, /must be a number from 1 to 9999/)
  })

  test('leaves the backups of other stores, and of one restored elsewhere', async () => {
    await backUpIn(2020)
    await using other = new Place()
    await using restored = new Place()
    await other.load(0, 3)
    await restored.run(`restore ${join(folder, nameOf(2020))}`)

    await other.run(`backup ${folder} --keep 1`)
    await restored.run(`backup ${folder} --keep 1`)

    expect(readdirSync(folder)).toContain(nameOf(2020))
  })

  test('keeps all backups that several processes make at once', async () => {
    await using other = new Place()
    await other.createStore()
    const backup = `backup ${folder} --keep`
    const runs = [
      ...[1, 2, 3].map(() => place.start(`${backup} 3`)),
      other.start(`${backup} 1`),
    ]

    const results = await Promise.all(runs.map(run => run.result))

    expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0])
    expect(readdirSync(folder)).toHaveLength(4)
  })

  test('creates no folder if the store cannot be backed up', async () => {
    await using onServer = new Place('postgres://127.0.0.1:9/plants')
    writeFileSync(place.store, 'no database'.repeat(1_000))

    await place.fails('backup new/folder --keep 1', 1, /could not be backed up/)
    await onServer.fails('backup new/folder --keep 1', 1, /use pg_dump to back it up/)

    expect(readdirSync(place.folder)).toEqual(['data'])
    expect(readdirSync(onServer.folder)).toEqual([])
  })

  test('leaves what is no backup of a store that it can read', async () => {
    mkdirSync(join(folder, nameOf(2020)), { recursive: true })
    symlinkSync('nothing', join(folder, nameOf(2021)))
    execFileSync('mkfifo', [join(folder, nameOf(2022))])
    writeFileSync(join(folder, nameOf(2023)), 'short')
    writeFileSync(join(folder, nameOf(2024)), Buffer.alloc(4096))

    const { code, stderr } = await place.run('backup to/backups --keep 1')

    expect(code, stderr).toBe(0)
    expect(readdirSync(folder)).toHaveLength(6)
  })
})

test.each(['backup', 'export'])(
  'a %s that is interrupted leaves nothing of it',
  async command => {
    await place.load(100, 20_000)
    const running = place.run(`${command} target`)
    while (!readdirSync(place.folder).some(name => name.endsWith('.part'))) {
      await nextTurn()
    }

    process.emit('SIGTERM')

    expect(await running).toEqual({
      code: 130,
      stdout: '',
      stderr: 'plant-store: interrupted\n',
    })
    expect(readdirSync(place.folder)).toEqual(['data'])
  },
)

/** A disk of 1 MiB; only root can have one. */
function mountSmallDisk(folder: string): boolean {
  mkdirSync(folder)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], {
      stdio: 'ignore',
    })
    return true
  } catch {
    return false
  }
}

describe('on a disk that is full', () => {
  let disk: string
  let isMounted: boolean
  beforeEach(() => {
    disk = place.path('disk')
    isMounted = mountSmallDisk(disk)
  })
  afterEach(() => {
    if (isMounted) {
      execFileSync('umount', [disk])
    }
  })

  test('an export that has room for all but its end is not taken for whole', async ({
    skip,
  }) => {
    skip(!isMounted, mayNotMount)
    await place.load(10, 5_000)
    const { stdout } = await place.run('export')
    const { bfree, bsize } = statfsSync(disk)
    const room = Math.floor(Buffer.byteLength(stdout) / bsize)
    writeFileSync(join(disk, 'others'), Buffer.alloc((bfree - room) * bsize))

    await place.fails(
      'export disk/plants',
      1,
      /^plant-store: disk\/plants: the disk is full\n$/,
    )

    expect(readdirSync(disk)).toEqual(['others'])
  })

  test('an import whose rejects have no room says what it kept', async ({ skip }) => {
    skip(!isMounted, mayNotMount)
    const content = `{"id":77,"name":"a"}\n${`no json ${'x'.repeat(1_000)}\n`.repeat(2_000)}`

    const { code, stderr } = await place.run('import - --rejects disk/rejects', content)

    expect(code).toBe(1)
    expect(stderr).toBe(
      'plant-store: disk/rejects: the disk is full (1 plant imported from the lines before line 2002)\n',
    )
    expect(await place.count()).toBe(11)
  })
})

test.each([
  ['import plants', /█{30} +100% {2}3 plants {2}[\d,]+\/s {2}\w+ left/],
  ['export file', /█{30} +100% {2}10 plants/],
  ['backup file', /░{30} +0% {2}0 pages/],
])('a terminal shows how far %s has come', async (args, bar) => {
  const lines = [1, 2, 3].map(id => `{"id":${100 + id},"name":"a"}\n`)
  writeFileSync(place.path('plants'), lines.join(''))
  const onTerminal = { stderr: { isTTY: true } }

  const { code, stderr } = await place.run(args, '', onTerminal)

  expect(code, stderr).toBe(0)
  expect(stripVTControlCharacters(stderr)).toMatch(bar)
})

describe('from a damaged store', () => {
  /** Overwrites the first leaf of each of these tables, as SQLite names them. */
  function damage(...tables: readonly string[]): void {
    const database = new Database(place.store)
    const select = database.prepare<[string], number>(
      "select min(pageno) from dbstat where name = ? and pagetype = 'leaf'",
    )
    const pages = tables.map(table => select.pluck().get(table) ?? 0)
    database.close()
    const bytes = readFileSync(place.store)
    for (const page of pages) {
      bytes.fill(0x5a, (page - 1) * 4096, page * 4096)
    }
    writeFileSync(place.store, bytes)
  }

  beforeEach(() => place.load(10, 990))

  test('nothing is taken, with advice on what to do', async () => {
    damage('plants')
    copyFileSync(place.store, place.path('damaged.db'))
    const advice =
      'restore a backup, or write what can be read with plant-store export --damaged'

    for (const args of ['check', 'backup new.db', 'export plants.ndjson']) {
      await place.fails(args, 1, new RegExp(`it is damaged.*: ${advice}\n$`))
    }
    await place.fails('check damaged.db', 1, /it is damaged.*: use an older backup\n$/)
    await place.fails('restore damaged.db --force', 1, /damaged.*: try another backup\n$/)

    expect(readdirSync(place.folder).sort()).toEqual(['damaged.db', 'data'])
  })

  test('what can be read is exported, and what cannot is counted', async () => {
    damage('plants')

    const { code, stdout, stderr } = await place.run('export --damaged')
    const json = await place.run('export --damaged plants.ndjson --json')

    const exported = stdout.trimEnd().split('\n').length
    const unread = 1_000 - exported
    expect([code, json.code]).toEqual([3, 3])
    expect(stderr).toMatch(
      new RegExp(
        `^plant-store: ${exported} plants exported in \\ds; ${unread} others could not be read\n$`,
      ),
    )
    expect(JSON.parse(json.stdout)).toMatchObject({ exported, unread })
  })

  test('the count says when it is unknown', async () => {
    damage('plants', 'plants_by_tag')

    await place.fails(
      'export --damaged a',
      3,
      /^plant-store: 9\d\d plants exported in \ds; an unknown number of others could not be read\n$/,
    )
  })
})

test.runIf(process.platform === 'linux')(
  'a command works from a deleted folder by full paths, and takes no others',
  async () => {
    const file = place.path('plants.ndjson')
    writeFileSync(file, '{"id":100,"name":"a"}\n')
    const run = (...args: string[]) => {
      const folder = place.path('deleted')
      mkdirSync(folder)
      const remove = ['-c', 'rmdir "$PWD" && exec "$@"', 'sh']
      const { status, stderr } = spawnSync(
        'sh',
        [...remove, process.execPath, commandProgram, ...args],
        { cwd: folder, env: { DATABASE_URL: place.url }, encoding: 'utf8' },
      )
      return { status, stderr }
    }
    const commands = [
      ['import', file],
      ['token', 'create', '--name', 'a'],
      ['token', 'list'],
      ['webhook', 'list'],
      ['export', place.path('out.ndjson')],
      ['remove', file],
      ['check'],
      ['backup', place.path('store.backup')],
      ['restore', '--force', place.path('store.backup')],
      ['serve', '--check'],
    ]

    for (const args of commands) {
      const { status, stderr } = run(...args)
      expect(status, `${args}: ${stderr}`).toBe(0)
    }
    expect(run('backup', 'store.backup')).toEqual({
      status: 1,
      stderr: expect.stringMatching(/: the working folder was deleted: [^\n]+\n$/),
    })
  },
)
