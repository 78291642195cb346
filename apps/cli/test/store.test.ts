import { execFileSync } from 'node:child_process'
import {
  chownSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { until } from '@plant-store/harness'
import { mayNotMount, needs } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { countsInWords, Place } from './place.ts'

let place: Place
beforeEach(() => {
  place = new Place()
})
afterEach(() => place[Symbol.asyncDispose]())

/** Creates plants from 16 clients at the same time until it is stopped. */
function startClients({ create }: Awaited<ReturnType<Place['serve']>>) {
  const answeredIds: number[] = []
  let isStopping = false
  let nextId = 10_000
  async function createPlants() {
    while (!isStopping) {
      const id = nextId
      nextId++
      const status = await create(id)
      expect(status, `the create of ${id}`).toBe(200)
      answeredIds.push(id)
    }
  }
  const clients = Array.from({ length: 16 }, createPlants)
  return {
    answeredIds,
    async stop() {
      isStopping = true
      await Promise.all(clients)
    },
  }
}

test('a backup beside a server has every create answered before', async () => {
  await place.load(0, 2_000)
  await place.run('token create --name shop')
  const server = await place.serve()
  const clients = startClients(server)
  await until('some are answered', () => clients.answeredIds.length > 16)
  const idsBefore = [...clients.answeredIds]

  const { code, stdout, stderr } = await place.run('backup first.db --json')

  const sentMax = 2_000 + clients.answeredIds.length + 16
  await clients.stop()
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  await using copy = new Place(`file:${place.path('first.db')}`)
  const plants = await copy.plants()
  const ids = new Set(plants.map(({ id }) => Number(id)))
  expect(idsBefore.filter(id => !ids.has(id))).toEqual([])
  expect(ids.size).toBeLessThanOrEqual(sentMax)
  expect(JSON.parse(stdout)).toMatchObject({ store: 'first.db', plants: ids.size })
})

test('a check works beside a server', async () => {
  await place.load(0, 2_000)
  await place.run('token create --name shop')
  await place.run('backup first.db')
  const server = await place.serve()
  await server.create(10_000)

  const { code, stdout, stderr } = await place.run('check')
  const json = await place.run('check --json')

  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const counts = countsInWords({ plants: '2,001', tokens: 1 })
  expect(stdout).toMatch(
    new RegExp(
      `^.*store.db: ${counts} in [\\d,]+ bytes, schema version \\d+: intact; last backup: [-\\d]+ [:\\d]+Z\n$`,
    ),
  )
  expect(JSON.parse(json.stdout)).toEqual({
    store: place.store,
    bytes: expect.any(Number),
    schemaVersion: expect.any(Number),
    ...(await place.counts()),
    plants: 2_001,
    tokens: 1,
    intact: true,
    lastBackup: expect.stringMatching(/^2.*Z$/),
  })
})

test('no command replaces a store that a server has open', async () => {
  await place.load(0, 20)
  await place.run('backup first.db')
  const server = await place.serve()
  await using other = new Place()
  await other.load(0, 1)
  const isInUse = /is in use: stop the server first\n$/

  await place.fails('restore first.db', 4, isInUse)
  await place.fails('restore first.db --force', 4, isInUse)
  linkSync(place.store, other.path('hard-link'))
  for (const target of [place.store, 'hard-link']) {
    await other.fails(`backup ${target} --force`, 4, isInUse)
    await other.fails(`export ${target} --force`, 4, isInUse)
  }
  const status = await server.create(10_000)

  expect(status).toBe(200)
  rmSync(other.path('hard-link'))
  await server.end()
  expect(await place.count()).toBe(21)
  const restored = await place.run('restore first.db --force --json')
  const report = JSON.parse(restored.stdout)
  expect(report).toMatchObject({ plants: 20, store: place.store })
  expect(await place.count()).toBe(20)
  expect(readdirSync(place.folder).sort()).toEqual(['data', 'first.db'])
})

test('a backup does not replace a file by chance, nor the store', async () => {
  await place.load(0, 10)
  writeFileSync(place.path('kept'), 'precious')
  await place.fails('backup kept', 1, /kept already exists: use --force to replace it/)
  await place.fails('backup data/store.db --force', 1, /is the store itself/)
  expect(readFileSync(place.path('kept'), 'utf8')).toBe('precious')
  const counts = countsInWords({ plants: 10 })
  const report = `^kept: ${counts} in [\\d,]+ bytes, schema version \\d+ backed up from /.*/data/store\\.db, and checked\n$`
  expect((await place.run('backup kept --force')).stdout).toMatch(new RegExp(report))
})

test('backup --keep keeps the newest backups of this store', async () => {
  await place.load(0, 10)
  const backups = place.path('to/backups')
  const printed = async (keep: number) => {
    const { code, stdout, stderr } = await place.run(`backup to/backups --keep ${keep}`)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }
  const name = /store\.db-\d{4}-\d\d-\d\dT\d{6}Z\.backup/
  expect(await printed(3)).toMatch(
    new RegExp(`^to/backups/${name.source}: 10 plants\\b.* and checked\n$`),
  )
  const [made = ''] = readdirSync(backups)
  expect(statSync(backups).mode & 0o777).toBe(0o700)
  expect(await place.run(`check to/backups/${made}`)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/intact\n$/),
  })

  const unrelated = ['store.db-before.backup', `${made}.old`]
  const old = [
    'store.db-2020-01-01T000000Z.backup',
    'store.db-2020-01-02T000000Z.backup',
    'store.db-2020-01-03T000000Z.backup',
  ]
  // The clock was ahead once.
  const ahead = 'store.db-2999-01-01T000000Z.backup'
  for (const name of [...unrelated, ...old, ahead]) {
    copyFileSync(join(backups, made), join(backups, name))
  }
  renameSync(join(backups, made), join(backups, 'store.db-2020-01-04T000000Z.backup'))
  expect(await printed(3)).toMatch(/ and checked; 3 older ones removed\n$/)
  const kept = readdirSync(backups).sort()
  const keptBackups = kept.filter(file => !unrelated.includes(file))
  expect(kept).toEqual(expect.arrayContaining(unrelated))
  expect(keptBackups).toEqual([
    'store.db-2020-01-04T000000Z.backup',
    expect.stringMatching(name),
    ahead,
  ])

  // A backup that fails removes nothing.
  await place.fails('backup to/backups --keep 1 --force', 2, /cannot be used with/)
  await place.fails('backup to/backups --keep 0', 2, /must be a number from 1 to 9999/)
  await place.fails(
    'backup data/store.db --keep 1',
    1,
    /store\.db is a file: --keep takes a folder\n$/,
  )
  writeFileSync(place.store, 'no database'.repeat(1_000))
  await place.fails('backup to/backups --keep 1', 1, /could not be backed up/)
  expect(readdirSync(backups).sort()).toEqual(kept)
})

test('backup --keep leaves the backups of another store of the same name', async () => {
  await using other = new Place()
  await other.load(0, 3)
  const backups = place.path('shared')
  await other.run(`backup ${backups} --keep 1`)
  const [backupOfOther = ''] = readdirSync(backups)
  renameSync(
    join(backups, backupOfOther),
    join(backups, 'store.db-2020-01-01T000000Z.backup'),
  )

  await place.load(0, 10)
  const { stderr } = await place.run('backup shared --keep 1')

  expect(stderr).toBe('')
  const kept = readdirSync(backups)
  expect(kept).toContain('store.db-2020-01-01T000000Z.backup')
  expect(kept).toHaveLength(2)
})

test('backup --keep leaves what is no backup of a store that it can read', async () => {
  await place.load(0, 10)
  const shared = place.path('shared')
  mkdirSync(shared)
  const nameOf = (year: number) => join(shared, `store.db-${year}-01-01T000000Z.backup`)
  mkdirSync(nameOf(2020))
  symlinkSync('nothing', nameOf(2021))
  execFileSync('mkfifo', [nameOf(2022)])
  writeFileSync(nameOf(2023), 'short')
  writeFileSync(nameOf(2024), Buffer.alloc(4096))
  const before = readdirSync(shared)

  const { code, stderr } = await place.run('backup shared --keep 1')

  expect(code, stderr).toBe(0)
  const after = readdirSync(shared)
  expect(after).toEqual(expect.arrayContaining(before))
  expect(after).toHaveLength(before.length + 1)
})

test('a store that was restored elsewhere leaves the backups of the first', async () => {
  await place.load(0, 10)
  await place.run('backup shared --keep 1')
  const shared = place.path('shared')
  const [first = ''] = readdirSync(shared)
  const early = 'store.db-2020-01-01T000000Z.backup'
  renameSync(join(shared, first), join(shared, early))
  await using other = new Place()

  await other.run(`restore ${shared}/${early}`)
  await other.run(`backup ${shared} --keep 1`)

  expect(readdirSync(shared)).toContain(early)
  expect(readdirSync(shared)).toHaveLength(2)
})

test('what is damaged is told of with what to do', async () => {
  await place.load(0, 1_000)
  await place.run('backup backup.db')
  const content = readFileSync(place.path('backup.db'))
  content.fill(0x5a, 20 * 4096, 25 * 4096)
  writeFileSync(place.path('damaged.db'), content)
  await place.fails(
    'restore damaged.db --force',
    1,
    /could not be restored from damaged.db: it is damaged.*: try another backup\n$/,
  )
  await place.fails('restore data/store.db', 1, /is the store itself/)
  const cannot = 'cannot be opened: it is damaged.*'
  await place.fails(
    'check damaged.db',
    1,
    new RegExp(`damaged.db ${cannot}: use an older backup\n$`),
  )
  expect(await place.count()).toBe(1_000)
  writeFileSync(place.store, content)
  const advice =
    'restore a backup, or write what can be read with plant-store export --damaged'
  await place.fails('check', 1, new RegExp(`store.db ${cannot}: ${advice}\n$`))
  await place.fails(
    'backup new.db',
    1,
    new RegExp(`backed up to new.db: it is damaged.*: ${advice}\n$`),
  )
  expect(readdirSync(join(place.folder, 'data'))).toEqual([
    'store.db',
    'store.db.last-backup',
  ])
})

test(
  "an import creates a store in another user's folder for that user",
  needs('root', process.getuid?.() === 0),
  async () => {
    writeFileSync(place.path('plants'), '{"id":1,"name":"a"}\n')
    chownSync(place.folder, 1, 2)
    const modes = () =>
      [
        'data',
        ...readdirSync(join(place.folder, 'data')).map(name => `data/${name}`),
      ].map(name => {
        const { uid, gid, mode } = statSync(place.path(name))
        return { name, uid, gid, mode: (mode & 0o777).toString(8) }
      })
    expect(await place.run('import plants')).toMatchObject({ code: 0 })
    expect(modes()).toEqual([
      { name: 'data', uid: 1, gid: 2, mode: expect.any(String) },
      { name: 'data/store.db', uid: 1, gid: 2, mode: '600' },
    ])
    // The folder's user serves it, and root's command beside the server leaves all
    // files to that user.
    await using storage = await openStorage({ url: place.url })
    await storage.check()
    expect(modes()).toMatchObject([
      { name: 'data', uid: 1, gid: 2 },
      { name: 'data/store.db', uid: 1, gid: 2 },
      { name: 'data/store.db-shm', uid: 1, gid: 2 },
      { name: 'data/store.db-wal', uid: 1, gid: 2 },
    ])
  },
)

/** A disk of 1 MiB; only root can have one. */
function smallDisk(folder: string): boolean {
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
    isMounted = smallDisk(disk)
  })
  afterEach(() => {
    if (isMounted) {
      // This process keeps the store open that it has checked.
      execFileSync('umount', ['--lazy', disk])
    }
  })

  test('an export that has room for all but its end is not taken for whole', async ({
    skip,
  }) => {
    skip(!isMounted, mayNotMount)
    await place.load(0, 5_000)
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

  test('an import keeps what was there, and says so', async ({ skip }) => {
    skip(!isMounted, mayNotMount)
    await using onDisk = new Place(`file:${disk}/store.db`)
    const name = 'x'.repeat(300)
    const plants = (from: number, count: number) => {
      const lines = Array.from({ length: count }, (_, n) => {
        return `{"id":${from + n},"name":"${name}"}\n`
      })
      return lines.join('')
    }
    const first = await onDisk.run('import -', plants(0, 500))
    expect(first.code, first.stderr).toBe(0)

    const second = await onDisk.run('import -', plants(500, 10_000))
    expect(second).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^plant-store: the store could not write the change: the disk is full .*\(what is stored stays: run the import again\)\n$/,
      ),
    })
    const check = await onDisk.run('check --json')
    const report = JSON.parse(check.stdout)
    expect(report).toMatchObject({ intact: true })
    // Parts of the import may be stored, each of them whole.
    expect(report.plants % 1_000, `of ${report.plants} plants`).toBe(500)
    expect(report.plants).toBeLessThan(10_500)
  })

  test('an import whose rejects have no room says what it kept', async ({ skip }) => {
    skip(!isMounted, mayNotMount)
    const content = `{"id":1,"name":"a"}\n${`no json ${'x'.repeat(1_000)}\n`.repeat(2_000)}`
    const { code, stderr } = await place.run('import - --rejects disk/rejects', content)
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        'plant-store: disk/rejects: the disk is full (1 plant imported from the lines before line 2002)\n',
    })
    expect(await place.count()).toBe(1)
  })
})

test.each([
  ['import plants', /█{30} +100% {2}3 plants {2}[\d,]+\/s {2}\w+ left/],
  ['export file', /█{30} +100% {2}20 plants/],
  ['backup file', /░{30} +0% {2}0 pages/],
])('a terminal shows how far %s has come', async (args, bar) => {
  await place.load(0, 20)
  const lines = [1, 2, 3].map(id => `{"id":${100 + id},"name":"a"}\n`)
  writeFileSync(place.path('plants'), lines.join(''))
  const onTerminal = { stderr: { isTTY: true } }

  const { code, stderr } = await place.run(args, '', onTerminal)

  expect(code, stderr).toBe(0)
  expect(stripVTControlCharacters(stderr)).toMatch(bar)
})

describe('from a damaged store', () => {
  const pageBytes = 4096

  /** Overwrites some pages of a kind, as SQLite names them. */
  function damage(table: string, kind: 'internal' | 'leaf', pages: number): void {
    const database = new Database(place.store)
    const select = database.prepare<[string, string, number], number>(
      'select pageno from dbstat where name = ? and pagetype = ? order by path limit ?',
    )
    const numbers = select.pluck().all(table, kind, pages)
    database.close()
    const bytes = readFileSync(place.store)
    for (const number of numbers) {
      bytes.fill(0x5a, (number - 1) * pageBytes, number * pageBytes)
    }
    writeFileSync(place.store, bytes)
  }

  beforeEach(() => place.load(0, 1_000))

  test('what can be read is exported, and what cannot is counted', async () => {
    damage('plants', 'leaf', 3)
    const advice =
      /is damaged.*: restore a backup, or write what can be read with plant-store export --damaged\n$/
    await place.fails('check', 1, advice)
    await place.fails('export plants.ndjson', 1, advice)
    const { code, stdout, stderr } = await place.run('export --damaged')
    const lines = stdout.trimEnd().split('\n')
    const missing = 1_000 - lines.length
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringMatching(
        `^plant-store: ${lines.length} plants exported in \\ds; ${missing} others could not be read\\n$`,
      ),
    })
    expect(missing).toBeGreaterThan(50)
    expect(missing).toBeLessThan(150)
    expect(lines.map(line => JSON.parse(line).id)).toEqual(
      Array.from({ length: lines.length }, (_, n) => n + missing),
    )

    const json = await place.run('export --damaged plants.ndjson --json')
    expect(json.code).toBe(3)
    expect(JSON.parse(json.stdout)).toMatchObject({
      exported: lines.length,
      unread: missing,
    })
    await using other = new Place()
    await other.run('import -', readFileSync(place.path('plants.ndjson')))
    expect(await other.count()).toBe(lines.length)
  })

  test('the count says when it is unknown', async () => {
    damage('plants', 'leaf', 1)
    damage('plants_by_tag', 'leaf', 1)
    await place.fails(
      'export --damaged a',
      3,
      /^plant-store: 9\d\d plants exported in \ds; an unknown number of others could not be read\n$/,
    )
    expect(readFileSync(place.path('a'), 'utf8')).toMatch(/^\{"id":\d\d,/)
  })
})
