import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { parsePlant } from '@plant-store/domain'
import { type StartedCommand, until } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Place } from './place.ts'

// What can be at the path that something is written to: a store, open or not, its log, a link, what a killed run left.

let place: Place
let other: Place
beforeEach(async () => {
  place = new Place()
  other = new Place()
  await place.load(0, 20)
})
afterEach(async () => {
  await place[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
})

/** A store of 300 plants as a killed server leaves it: 200 of them are in its log only. */
async function crashedStore(file: string) {
  await other.load(1_000, 100)
  await using storage = await openStorage({ url: other.url })
  await storage.plants.insertAll?.(
    Array.from({ length: 200 }, (_, n) => parsePlant({ id: BigInt(1_100 + n), name: 'in the log' })),
  )
  copyFileSync(other.store, file)
  copyFileSync(`${other.store}-wal`, `${file}-wal`)
}

async function plantsIn(file: string): Promise<number> {
  await using copy = new Place(`file:${file}`)
  const { stdout } = await copy.run('export')
  return stdout.split('\n').length - 1
}

describe('what is in the way', () => {
  test.each([
    ["another store's log beside an earlier backup", 'backup'],
    ['another store and its log', 'store'],
    ["another store's log", 'nothing'],
  ])('%s is no part of a backup', async (_, target) => {
    const file = place.path('backup.db')
    await crashedStore(place.path('crashed.db'))
    if (target === 'backup') await place.run('backup backup.db')
    if (target === 'store') copyFileSync(place.path('crashed.db'), file)
    copyFileSync(place.path('crashed.db-wal'), `${file}-wal`)

    expect(await place.run('backup backup.db --force')).toMatchObject({ code: 0, stderr: '' })
    expect(await place.run('check backup.db')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('20 plants'),
    })
    expect(await plantsIn(file)).toBe(20)
    expect(existsSync(`${file}-wal`)).toBe(false)
  })

  test.each(['-wal', '-shm', '-journal'])('a log (%s) is not replaced by chance', async suffix => {
    writeFileSync(place.path(`target${suffix}`), "another's")
    for (const command of ['backup', 'export']) {
      await place.fails(`${command} target`, 1, /target-\w+ already exists: use --force to replace it\n$/)
    }
    expect(readdirSync(place.folder).sort()).toEqual(['data', `target${suffix}`])
  })

  test('another store is not taken for a log of the target, nor the target for its log', async () => {
    await other.load(0, 10)
    const log = `${other.store}-wal`
    for (const command of ['backup', 'export']) {
      await place.fails(`${command} ${log} --force`, 1, /store\.db-wal belongs to .*store\.db\n$/)
    }
    symlinkSync(place.path('data'), place.path('linked'))
    await place.fails('backup linked/store.db-wal --force', 1, /is the store itself/)
    expect(existsSync(log)).toBe(false)
  })

  test('what is no file is not replaced', async () => {
    execFileSync('mkfifo', [place.path('pipe')])
    symlinkSync('nowhere', place.path('link'))
    for (const command of ['backup', 'export']) {
      await place.fails(`${command} pipe --force`, 1, /pipe is not a file\n$/)
      await place.fails(`${command} link --force`, 1, /link is a dangling link\n$/)
    }
    expect(lstatSync(place.path('pipe')).isFIFO()).toBe(true)
    expect(lstatSync(place.path('link')).isSymbolicLink()).toBe(true)
  })

  test('a file behind a link is replaced, not the link', async () => {
    mkdirSync(place.path('disk'))
    for (const command of ['backup', 'export']) {
      writeFileSync(place.path('disk/target'), 'old')
      symlinkSync('disk/target', place.path(command))
      await place.fails(`${command} ${command}`, 1, /already exists: use --force/)
      expect((await place.run(`${command} ${command} --force`)).code).toBe(0)
      expect(lstatSync(place.path(command)).isSymbolicLink()).toBe(true)
      expect(statSync(place.path('disk/target')).size).toBeGreaterThan(500)
    }
  })

  test('a file that has another name keeps its content there', async () => {
    await place.run('backup daily.db')
    linkSync(place.path('daily.db'), place.path('yesterday.db'))
    await place.load(100, 5)
    expect((await place.run('backup daily.db --force')).code).toBe(0)
    expect(await plantsIn(place.path('daily.db'))).toBe(25)
    expect(await plantsIn(place.path('yesterday.db'))).toBe(20)
  })

  test('rejects do not go into the store', async () => {
    writeFileSync(place.path('plants'), '{"id":1}\n')
    for (const log of ['', '-wal']) {
      await place.fails(['import', 'plants', '--rejects', `data/store.db${log}`], 1, /is the store itself/)
    }
    expect(await place.count()).toBe(20)
  })
})

describe('a store that a server has open', () => {
  test('is not replaced by a backup or an export, whatever it is called', async () => {
    const server = await other.serve()
    let id = 0
    const create = () => server.create(id++)
    expect(await create()).toBe(200)
    symlinkSync(other.store, place.path('link'))
    linkSync(other.store, place.path('hard-link'))
    for (const target of [other.store, 'link', 'hard-link']) {
      for (const command of ['backup', 'export']) {
        await place.fails(`${command} ${target} --force`, 4, /is in use: stop the server first\n$/)
        expect(await create()).toBe(200)
      }
    }
    await server.end()
    expect(await other.count()).toBe(id)
  })

  test('is not replaced when it was opened while the copy was made', async () => {
    await place.load(100, 20_000)
    for (const command of ['backup', 'export']) {
      await other.load(0, 1)
      const args = `${command} ${other.store} --force`
      const running = await stoppedWhileWriting(args, other.path('data'))
      const server = await other.serve()
      running.process.kill('SIGCONT')
      expect(await running.result).toMatchObject({ code: 4, stderr: expect.stringMatching(/is in use/) })
      await server.end()
      expect(await other.count()).toBe(1)
    }
  })
})

test('what came while the copy was made is not replaced by chance', async () => {
  await place.load(100, 20_000)
  for (const command of ['backup', 'export']) {
    const running = await stoppedWhileWriting(`${command} ${command}`, place.folder)
    writeFileSync(place.path(command), 'precious')
    running.process.kill('SIGCONT')
    expect(await running.result).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/already exists: use --force/),
    })
    expect(readFileSync(place.path(command), 'utf8')).toBe('precious')
  }
  expect(readdirSync(place.folder).sort()).toEqual(['backup', 'data', 'export'])
})

test('a copy that is interrupted leaves nothing of it', async () => {
  await place.load(100, 20_000)
  for (const command of ['backup', 'export']) {
    const running = await stoppedWhileWriting(`${command} ${command}`, place.folder)
    for (const signal of ['SIGTERM', 'SIGCONT'] as const) running.process.kill(signal)
    expect(await running.result).toEqual({ code: 130, stdout: '', stderr: 'plant-store: interrupted\n' })
  }
  expect(readdirSync(place.folder)).toEqual(['data'])
  // A second signal ends it at once.
  const running = await stoppedWhileWriting('export export', place.folder)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGCONT'] as const) running.process.kill(signal)
  expect(await running.result).toEqual({ code: 130, stdout: '', stderr: '' })
})

/**
 * Starts a command that sends itself a signal as soon as a file of this name changes in the folder. On a busy machine
 * another process would be too late.
 */
function startWithSignal(args: string, folder: string, [suffix, signal]: readonly [string, NodeJS.Signals]) {
  const code = `
    import { watch } from 'node:fs'
    import { isMainThread } from 'node:worker_threads'
    const watcher = isMainThread && watch('${folder}', (_, name) => {
      if (!name.endsWith('${suffix}')) return
      watcher.close()
      process.kill(process.pid, '${signal}')
    })
    if (watcher) watcher.unref()`
  const NODE_OPTIONS = `--import data:text/javascript,${encodeURIComponent(code)}`
  return place.start(args, '', { NODE_OPTIONS })
}

/** Starts a command, and resolves once it is stopped (SIGSTOP) with a part of what it writes. */
async function stoppedWhileWriting(args: string, folder: string): Promise<StartedCommand> {
  const running = startWithSignal(args, folder, ['.part', 'SIGSTOP'])
  await until('it is stopped', () => / T /.test(readFileSync(`/proc/${running.pid}/stat`, 'utf8')))
  return running
}

test.each(['backup', 'export'])('(%s) a run that was killed leaves only its part', async command => {
  await place.load(100, 20_000)
  await startWithSignal(`${command} target`, place.folder, ['.part', 'SIGKILL']).result
  const left = readdirSync(place.folder).filter(name => !name.endsWith('-journal'))
  expect(left.sort()).toEqual([expect.stringMatching(/\.part$/), 'data'])
  expect((await place.run(`${command} target`)).code).toBe(0)
})

describe('a restore', () => {
  test('that is killed leaves the old store or the new one', async () => {
    await place.load(100, 20_000)
    await place.run('backup backup.db')
    await place.load(100_000, 5)
    const killed = ['store.db-journal', 'SIGKILL'] as const
    await startWithSignal('restore backup.db --force', place.path('data'), killed).result
    expect([20_025, 20_020]).toContain(await place.count())
    expect((await place.run('check')).code).toBe(0)
    expect((await place.run('restore backup.db --force')).code).toBe(0)
    expect(await place.count()).toBe(20_020)
  })

  test('does not replace a store by chance', async () => {
    await place.run('backup backup.db')
    await place.load(100, 5)
    await place.fails(
      'restore backup.db',
      1,
      /store\.db already exists: use --force to replace it and lose the changes since the backup\n$/,
    )
    expect(await place.count()).toBe(25)
    rmSync(place.store)
    writeFileSync(`${place.store}-wal`, "another's")
    await place.fails('restore backup.db', 1, /store\.db-wal already exists: use --force to replace it\n$/)
    expect((await place.run('restore backup.db --force')).code).toBe(0)
    expect(await place.count()).toBe(20)
    rmSync(place.store)
    await using elsewhere = new Place('file:new/plants.db')
    copyFileSync(place.path('backup.db'), elsewhere.path('backup.db'))
    const restored = `^${elsewhere.path('new/plants.db')}: 20 plants .* restored from backup\\.db\\n`
    expect(await elsewhere.run('restore backup.db')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        `${restored}There was no store before\\. Start the server with this DATABASE_URL\\.\n$`,
      ),
    })
  })

  test('says which revoked tokens it brings back, and which it loses', async () => {
    for (const name of ['shop', 'kept', 'renewed']) await place.run(`token create --name ${name}`)
    await place.run('backup backup.db')
    for (const name of ['shop', 'renewed']) await place.run(`token revoke ${name}`)
    await place.run('token create --name renewed')
    const { stdout } = await place.run('restore backup.db --force')
    expect(stdout).toMatch(
      /restored from backup\.db\nThese tokens were not in the replaced store and are valid again: renewed, shop\. To revoke one: plant-store token revoke <name>\nThese tokens are not in the backup and are lost: renewed\. To create one: plant-store token create --name <name>\nStart the server\.\n$/,
    )
    const again = await place.run('restore backup.db --force --json')
    expect(JSON.parse(again.stdout)).toMatchObject({ tokens: 3, revokedTokens: [], lostTokens: [] })
    await place.run('token revoke kept')
    const third = await place.run('restore backup.db --force --json')
    expect(JSON.parse(third.stdout)).toMatchObject({ revokedTokens: ['kept'] })
  })

  test('over a store that cannot be read says that tokens may be valid again', async () => {
    await place.run('backup backup.db')
    const damage = () => writeFileSync(place.store, 'damaged '.repeat(1_000))
    damage()
    expect((await place.run('restore backup.db --force')).stdout).toMatch(
      /restored from backup\.db\nThe replaced store could not be read: .*\nStart the server\.\n$/,
    )
    damage()
    const { stdout } = await place.run('restore backup.db --force --json')
    expect(JSON.parse(stdout)).toMatchObject({ plants: 20, revokedTokens: null, lostTokens: null })
  })

  test("refuses a backup that has another's log beside it", async () => {
    await place.run('backup backup.db')
    await crashedStore(place.path('crashed.db'))
    for (const log of ['backup.db-wal', 'backup.db-journal']) {
      copyFileSync(place.path('crashed.db-wal'), place.path(log))
      await place.fails('restore backup.db --force', 1, new RegExp(`${log} is the log of another store`))
      rmSync(place.path(log))
    }
    expect(await place.count()).toBe(20)
    // A store as a killed server leaves it has a log of its own.
    expect((await place.run('restore crashed.db --force')).code).toBe(0)
    expect(await place.count()).toBe(300)
  })
})

test('a store and its copies are for their owner only, or for the group that was let in', async () => {
  const storage = await openStorage({ url: place.url })
  await place.run('backup backup.db')
  const mode = (file: string) => (statSync(file).mode & 0o777).toString(8)
  for (const file of [place.store, `${place.store}-wal`, `${place.store}-shm`, place.path('backup.db')]) {
    expect(`${file} ${mode(file)}`).toBe(`${file} 600`)
  }
  await storage[Symbol.asyncDispose]()
  for (const [before, after] of [
    ['640', '640'],
    ['644', '640'],
  ] as const) {
    for (const file of ['backup.db', 'data/store.db']) execFileSync('chmod', [before, place.path(file)])
    expect((await place.run('backup backup.db --force')).code).toBe(0)
    expect((await place.run('restore backup.db --force')).code).toBe(0)
    expect([mode(place.store), mode(place.path('backup.db'))]).toEqual([after, after])
  }
})
