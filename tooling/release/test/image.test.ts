import { mkdirSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, startServer } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { run as runHere } from '../src/run.ts'
import {
  assertServes,
  canRelease,
  ended,
  hasUmoci,
  releasedFile,
  succeeds,
} from './machine.ts'

const uid = 10_001

/** Unpacks an image into a folder, and returns the bundle that runtimes start. */
function unpackImage(archive: string, folder: string): string {
  const layout = join(folder, 'layout')
  const bundle = join(folder, 'bundle')
  const version = /\/plant-store-([^/]*)-linux[^/]*$/.exec(archive)?.[1]
  mkdirSync(layout)
  runHere('tar', '-xf', archive, '-C', layout)
  runHere('umoci', 'unpack', '--image', `${layout}:${version}`, bundle)
  return bundle
}

test(
  'the image serves as its user, and writes only to /data',
  needs('umoci', canRelease && hasUmoci),
  async context => {
    if (!succeeds('unshare', '--mount', 'true')) {
      return context.skip('not allowed: mounts of a process')
    }
    const archive = releasedFile('.oci.tar')
    const bundle = unpackImage(archive, temporaryFolder())
    const root = join(bundle, 'rootfs')
    const { process: config } = JSON.parse(
      readFileSync(join(bundle, 'config.json'), 'utf8'),
    )
    const megabytes =
      Number(
        runHere('du', '--summarize', '--apparent-size', '--block-size=1', root).split(
          '\t',
        )[0],
      ) / 1e6
    const packed = statSync(archive).size / 1e6
    console.log(`the image: ${packed.toFixed(1)} MB, unpacked ${megabytes.toFixed(1)} MB`)
    expect(config.user).toMatchObject({ uid, gid: uid })
    expect(config.args).toEqual(['plant-store', 'serve'])
    expect(packed).toBeLessThan(73)

    const assignments: string[] = config.env
    const ownEnvironment = Object.fromEntries(assignments.map(text => text.split('=')))
    expect(ownEnvironment).toMatchObject({
      HOST: '0.0.0.0',
      DATABASE_URL: 'file:/data/plants.db',
    })
    const port = `${await freePort()}`
    const environment = { ...ownEnvironment, HOST: '127.0.0.1', PORT: port }
    /** Runs a command like a container engine with `--read-only` and a volume. */
    const contained = (...args: readonly string[]) => {
      const mount = '/bin/mount --bind "$0" "$0" && /bin/mount --bind "$0/data" "$0/data"'
      const protect = '/bin/mount -o remount,bind,ro "$0"'
      const become = `exec /usr/sbin/chroot --userspec=${uid}:${uid} "$0" "$@"`
      const script = `${mount} && ${protect} && ${become}`
      return [
        '/usr/bin/unshare',
        '--mount',
        '/bin/sh',
        '-c',
        script,
        root,
        ...args,
      ] as const
    }
    const run = (...args: readonly string[]) => ended(contained(...args), environment)

    expect(await run('plant-store-health')).toMatchObject({ code: 1 })

    const [program = ''] = config.args
    await using server = await startServer({
      command: contained(...config.args),
      environment,
    })
    expect(await run('plant-store-health')).toMatchObject({ code: 0, stderr: '' })
    const plantStore = (...args: readonly string[]) => run(program, ...args)
    await assertServes(server, plantStore)
    expect(await plantStore('backup', '/plants.backup')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/read-only|EROFS/i),
    })

    const files = readdirSync(join(root, 'data'))
    expect(files).toEqual(expect.arrayContaining(['plants.backup', 'plants.db']))
    for (const file of files) {
      expect(statSync(join(root, 'data', file)).uid, file).toBe(uid)
    }

    // The backup moves out of the volume, as if it were mounted beside it.
    renameSync(join(root, 'data/plants.backup'), join(root, 'plants.backup'))
    expect(await plantStore('restore', '/plants.backup', '--force')).toMatchObject({
      code: 0,
      stderr: '',
    })
  },
)
