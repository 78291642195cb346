import { copyFileSync, linkSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Place } from './place.ts'

// These tests put things at the path that something is written to. The tests of
// persistence have more of it.

let place: Place
beforeEach(async () => {
  place = new Place()
  await place.load(0, 20)
})
afterEach(() => place[Symbol.asyncDispose]())

test.each(['backup', 'export'])(
  '%s --force leaves the content under another name of the file',
  async command => {
    writeFileSync(place.path('target'), 'old')
    linkSync(place.path('target'), place.path('other-name'))
    await place.fails(`${command} target`, 1, /already exists: use --force/)

    const { code } = await place.run(`${command} target --force`)

    expect(code).toBe(0)
    expect(readFileSync(place.path('target')).length).toBeGreaterThan(500)
    expect(readFileSync(place.path('other-name'), 'utf8')).toBe('old')
  },
)

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

describe('a restore', () => {
  test('does not replace a store by chance', async () => {
    await place.run('backup backup.db')
    await place.load(100, 5)
    const advice = 'use --force to replace it and lose the changes since the backup'
    await place.fails(
      'restore backup.db',
      1,
      new RegExp(`store\\.db already exists: ${advice}\n$`),
    )
    expect(await place.count()).toBe(25)
    await using elsewhere = new Place('file:new/plants.db')
    copyFileSync(place.path('backup.db'), elsewhere.path('backup.db'))
    const restored = `^${elsewhere.path('new/plants.db')}: 20 plants\\b.* restored from backup\\.db\n`
    const next =
      'There was no store before\\. Start the server with this DATABASE_URL\\.\n$'
    expect((await elsewhere.run('restore backup.db')).stdout).toMatch(
      new RegExp(restored + next),
    )
  })

  test('says which revoked tokens it brings back, and which it loses', async () => {
    for (const name of ['shop', 'kept', 'renewed']) {
      await place.run(`token create --name ${name}`)
    }
    await place.run('backup backup.db')
    for (const name of ['shop', 'renewed']) {
      await place.run(`token revoke ${name}`)
    }
    await place.run('token create --name renewed')
    const { stdout } = await place.run('restore backup.db --force')
    expect(stdout).toMatch(
      /restored from backup\.db\nThese tokens were not in the replaced store and are valid again: renewed, shop\. To revoke one: plant-store token revoke <name>\nThese tokens are not in the backup and are lost: renewed\. To create one: plant-store token create --name <name>\nStart the server\.\n$/,
    )
    const again = await place.run('restore backup.db --force --json')
    expect(JSON.parse(again.stdout)).toMatchObject({
      tokens: 3,
      revokedTokens: [],
      lostTokens: [],
    })
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
    expect(JSON.parse(stdout)).toMatchObject({
      plants: 20,
      revokedTokens: null,
      lostTokens: null,
    })
  })
})
