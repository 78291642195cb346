import {
  copyFileSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { type StartedCommand, until } from '@plant-store/harness'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Place } from './place.ts'

// What can be at the path that something is written to. The tests of persistence have more of it.

let place: Place
beforeEach(async () => {
  place = new Place()
  await place.load(0, 20)
})
afterEach(() => place[Symbol.asyncDispose]())

test('a file behind a link is replaced, not the link, and keeps its content under another name', async () => {
  mkdirSync(place.path('disk'))
  for (const command of ['backup', 'export']) {
    writeFileSync(place.path('disk/target'), 'old')
    linkSync(place.path('disk/target'), place.path(`before ${command}`))
    symlinkSync('disk/target', place.path(command))
    await place.fails(`${command} ${command}`, 1, /already exists: use --force/)
    expect((await place.run(`${command} ${command} --force`)).code).toBe(0)
    expect(lstatSync(place.path(command)).isSymbolicLink()).toBe(true)
    expect(readFileSync(place.path('disk/target')).length).toBeGreaterThan(500)
    expect(readFileSync(place.path(`before ${command}`), 'utf8')).toBe('old')
  }
})

test('rejects do not go into the store', async () => {
  writeFileSync(place.path('plants'), '{"id":1}\n')
  for (const suffix of ['', '-wal']) {
    await place.fails(['import', 'plants', '--rejects', `data/store.db${suffix}`], 1, /is the store itself/)
  }
  expect(await place.count()).toBe(20)
})

test('a store that a server has open is not replaced by a backup or an export, whatever it is called', async () => {
  await using other = new Place()
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
    // The next one to write takes back what was interrupted.
    expect((await place.run('token create --name next')).code).toBe(0)
    expect([20_025, 20_020]).toContain(await place.count())
    expect((await place.run('check')).code).toBe(0)
    expect((await place.run('restore backup.db --force')).code).toBe(0)
    expect(await place.count()).toBe(20_020)
  })

  test('does not replace a store by chance', async () => {
    await place.run('backup backup.db')
    await place.load(100, 5)
    const advice = 'use --force to replace it and lose the changes since the backup'
    await place.fails('restore backup.db', 1, new RegExp(`store\\.db already exists: ${advice}\n$`))
    expect(await place.count()).toBe(25)
    await using elsewhere = new Place('file:new/plants.db')
    copyFileSync(place.path('backup.db'), elsewhere.path('backup.db'))
    const restored = `^${elsewhere.path('new/plants.db')}: 20 plants, .* restored from backup\\.db\n`
    const next = 'There was no store before\\. Start the server with this DATABASE_URL\\.\n$'
    expect((await elsewhere.run('restore backup.db')).stdout).toMatch(new RegExp(restored + next))
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
})
