import { execFileSync } from 'node:child_process'
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
import { mayNotMount } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { nextBackup } from '../src/files/backup-folder.ts'
import { Place } from './place.ts'

// These tests check what commands say of a store. Others test what they do to it.

let place: Place
beforeEach(async () => {
  place = new Place()
  await place.createStore(10)
})
afterEach(() => place[Symbol.asyncDispose]())

test('a backup, its check and its restore say what they did', async () => {
  const contents = '10 plants… in … bytes, schema version …'
  await using elsewhere = new Place('file:new/plants.db')

  await place.session(`
    $ backup first.db
    first.db: ${contents} backed up from ${place.store}, and checked
    $ check
    ${place.store}: ${contents}: intact; last backup: …-…-… …:…Z
    $ check --json
    {"store":"${place.store}","bytes":…,"schemaVersion":…"plants":10,…"intact":true,"lastBackup":"2…Z"}
    $ restore first.db --force --json
    {"store":"${place.store}",…"plants":10,…"revokedTokens":[],"lostTokens":[]}`)
  await elsewhere.session(`
    $ restore ${place.path('first.db')}
    ${elsewhere.path('new/plants.db')}: ${contents} restored from ${place.path('first.db')}
    There was no store before. Start the server with this DATABASE_URL.`)
})

test('a restore says which tokens it brings back, and which it loses', async () => {
  await place.session(`
    $ token create --name shop
    plantstore_…
    ! The token of shop …
    $ backup backup.db
    backup.db: …
    $ token revoke shop
    shop is revoked; …
    $ token create --name later
    plantstore_…
    ! The token of later …
    $ restore backup.db --force
    ${place.store}: … restored from backup.db
    These tokens were not in the replaced store and are valid again: shop. To revoke one: plant-store token revoke <name>
    These tokens are not in the backup and are lost: later. To create one: plant-store token create --name <name>
    Start the server.`)

  writeFileSync(place.store, 'damaged '.repeat(1_000))
  await place.session(`
    $ restore backup.db --force
    ${place.store}: … restored from backup.db
    The replaced store could not be read: revoked tokens may be valid again, and later ones lost.
    Start the server.`)
})

test('a command leaves an older store as it is', async () => {
  const database = new Database(place.store)
  database.exec('update schema_version set version = version - 1')
  database.close()

  await place.session(`
    $ token create --name shop
    ! plant-store: … has schema version …, and this release needs …: stop the servers, then start the new one, which migrates it
    [1]`)
})

test('nothing is replaced by chance', async () => {
  writeFileSync(place.path('kept'), 'precious')
  await place.session(`
    $ backup kept
    ! plant-store: …kept already exists: use --force to replace it
    [1]
    $ backup none/
    ! plant-store: …none/ is a folder
    [1]
    $ backup data/store.db --force
    ! plant-store: data/store.db is the store itself
    [1]
    $ restore data/store.db
    ! plant-store: data/store.db is the store itself
    [1]
    $ backup kept --force
    kept: 10 plants…
    $ restore kept
    ! plant-store: …store.db already exists: use --force to replace it and lose the changes since the backup
    [1]`)

  await using _server = await openStorage({ url: place.url })
  await place.session(`
    $ restore kept --force
    ! plant-store: … is in use: stop the server first
    [4]`)
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
    // The clock was ahead once, and the store had another name.
    const older = `z${nameOf(2021)}`
    for (const name of [...unrelated, older, nameOf(2022), nameOf(2999)]) {
      copyFileSync(join(folder, nameOf(2020)), join(folder, name))
    }

    await place.session(`
      $ backup to/backups --keep 3
      to/backups/store.db-…-….backup: 10 plants… and checked; 2 older ones removed`)

    const kept = readdirSync(folder)
    const now = expect.stringMatching(
      /^store\.db-\d{4}-\d\d-\d\dT\d{6}Z-[\da-f]{8}\.backup$/,
    )
    const backups = kept.filter(name => !unrelated.includes(name))
    expect(kept).toEqual(expect.arrayContaining(unrelated))
    expect(backups.sort()).toEqual([nameOf(2022), now, nameOf(2999)])
    expect(statSync(folder).mode & 0o777).toBe(0o700)

    writeFileSync(place.store, 'no database'.repeat(1_000))
    await place.session(`
      $ backup to/backups --keep 1
      ! plant-store: …could not be backed up…
      [1]
      $ backup new/folder --keep 1
      ! plant-store: …could not be backed up…
      [1]`)
    expect(readdirSync(folder), 'after a failed backup').toHaveLength(kept.length)
    expect(readdirSync(place.folder)).toEqual(['data', 'to'])
  })

  test('is refused for a file, with --force and for no backup', () =>
    place.session(`
      $ backup data/store.db --keep 1
      ! plant-store: data/store.db is a file: --keep takes a folder
      [1]
      $ backup a --keep 1 --force
      ! plant-store: …cannot be used with…
      [2]
      $ backup a --keep 0
      ! plant-store: …It must be a number from 1 to 9999. (see --help)
      [2]`))

  test('leaves what is not, or may not be, an older backup of its store', async () => {
    await backUpIn(2020)
    mkdirSync(join(folder, nameOf(2021)))
    symlinkSync('nothing', join(folder, nameOf(2022)))
    execFileSync('mkfifo', [join(folder, nameOf(2023))])
    writeFileSync(join(folder, nameOf(2024)), Buffer.alloc(4096))
    // Another store has another id.
    await using restored = new Place()
    await restored.run(`restore ${join(folder, nameOf(2020))}`)

    await restored.session(`
      $ backup ${folder} --keep 1
      ${folder}/store.db-….backup: …, and checked`)

    expect(readdirSync(folder)).toHaveLength(6)
  })

  test('gives the backups of one second different names', () => {
    const names = [1, 2].map(() => nextBackup(place.folder, 'store.db'))

    expect(new Set(names).size).toBe(2)
  })
})

test.each(['backup', 'export'])(
  'a %s that is interrupted leaves nothing of it',
  async command => {
    const listenersBefore = process.listenerCount('SIGTERM')
    const running = place.run(`${command} target`)
    while (process.listenerCount('SIGTERM') === listenersBefore) {
      await nextTurn()
    }

    process.emit('SIGTERM')

    expect(await running).toEqual({
      code: 130,
      stdout: '',
      stderr: 'plant-store: interrupted\n',
    })
    expect(readdirSync(place.folder)).toEqual(['data'])
    expect(process.listenerCount('SIGTERM')).toBe(listenersBefore)
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
    await place.createStore(100)
    const { stdout } = await place.run('export')
    const { bfree, bsize } = statfsSync(disk)
    const room = Math.floor(Buffer.byteLength(stdout) / bsize)
    writeFileSync(join(disk, 'others'), Buffer.alloc((bfree - room) * bsize))

    await place.session(`
      $ export disk/plants
      ! plant-store: disk/plants: the disk is full
      [1]`)

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
    expect(await place.counts()).toMatchObject({ plants: 11 })
  })
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

  beforeEach(() => place.createStore(1_000))

  test('nothing is taken, with advice on what to do', async () => {
    damage('plants')
    copyFileSync(place.store, place.path('damaged.db'))
    for (const args of ['check', 'backup new.db', 'export plants.ndjson']) {
      await place.session(`
        $ ${args}
        ! plant-store: …it is damaged…: restore a backup, or write what can be read with plant-store export --damaged
        [1]`)
    }
    await place.session(`
      $ check damaged.db
      ! plant-store: …it is damaged…: use an older backup
      [1]
      $ restore damaged.db --force
      ! plant-store: …damaged…: try another backup
      [1]`)

    expect(readdirSync(place.folder).sort()).toEqual(['damaged.db', 'data'])
  })

  test('what can be read is exported, and what cannot is counted', async () => {
    damage('plants')

    const { code, stdout, stderr } = await place.run('export --damaged')
    const json = await place.run('export --damaged plants.ndjson --json')
    damage('plants_by_tag')
    await place.session(`
      $ export --damaged a
      ! plant-store: 9… plants exported in …s; an unknown number of others could not be read
      [3]`)

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
})
