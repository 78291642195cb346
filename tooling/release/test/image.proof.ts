import { mkdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { freePort, isInstalled, startServer } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { beforeAll, expect, test } from 'vitest'
import { makeFolder } from '../src/folder.ts'
import { uid } from '../src/image.ts'
import { run, writeTar } from '../src/run.ts'
import {
  assertKeepsPlants,
  canRelease,
  ended,
  makeRelease,
  releaseFile,
  succeeds,
} from './machine.ts'

beforeAll(() => makeRelease('--image'))

test(
  'the image serves as its user, and writes only to /data',
  needs('umoci', canRelease && isInstalled('umoci')),
  async context => {
    if (!succeeds('unshare', '--mount', 'true')) {
      return context.skip('not allowed: mounts of a process')
    }
    const archive = releaseFile('.oci.tar')
    const [, version] = /plant-store-([^/]*)-linux/.exec(archive) ?? []
    const folder = temporaryFolder()
    const layout = join(folder, 'layout')
    const bundle = join(folder, 'bundle')
    mkdirSync(layout)
    run('tar', '-xf', archive, '-C', layout)
    run('umoci', 'unpack', '--image', `${layout}:${version}`, bundle)
    const root = join(bundle, 'rootfs')
    const { process: config } = JSON.parse(
      readFileSync(join(bundle, 'config.json'), 'utf8'),
    )
    expect(config.user).toMatchObject({ uid, gid: uid })
    expect(config.args).toEqual(['plant-store', 'serve'])
    expect(statSync(archive).size).toBeLessThan(73e6)

    const assignments: string[] = config.env
    const ownEnvironment = Object.fromEntries(assignments.map(text => text.split('=')))
    const port = `${await freePort()}`
    const environment = { ...ownEnvironment, HOST: '127.0.0.1', PORT: port }
    // A container engine does the same with `--read-only` and a volume.
    const mount = '/bin/mount --bind "$0" "$0" && /bin/mount --bind "$0/data" "$0/data"'
    const protect = '/bin/mount -o remount,bind,ro "$0"'
    const become = `exec /usr/sbin/chroot --userspec=${uid}:${uid} "$0" "$@"`
    const script = `${mount} && ${protect} && ${become}`
    const contained = [
      '/usr/bin/unshare',
      '--mount',
      '/bin/sh',
      '-c',
      script,
      root,
    ] as const
    const plantStore = [...contained, 'plant-store'] as const
    const isHealthy = async () =>
      (await ended([...contained, 'plant-store-health'], { environment })).code === 0

    expect(await isHealthy()).toBe(false)
    const command = [...contained, ...(config.args as string[])] as const
    await using server = await startServer({ command, environment })
    expect(await isHealthy()).toBe(true)
    await assertKeepsPlants(server, plantStore, { environment }, '/data/plants.backup')
    expect(statSync(join(root, 'data/plants.db')).uid).toBe(uid)
    const outside = await ended([...plantStore, 'backup', '/plants.backup'], {
      environment,
    })
    expect(outside.stderr).toMatch(/read-only|EROFS/i)

    // The backup moves out of the volume, as if it were mounted beside it.
    renameSync(join(root, 'data/plants.backup'), join(root, 'plants.backup'))
    const restore = ['restore', '/plants.backup', '--force']
    const restored = await ended([...plantStore, ...restore], { environment })
    expect(restored).toMatchObject({ code: 0, stderr: '' })
  },
)

test('the release is the same again, elsewhere and under another umask', () => {
  const again = temporaryFolder()
  const archive = join(again, 'again.tar')
  const umask = process.umask(0o077)
  try {
    const { name, sbom } = makeFolder(again)
    writeTar(archive, again, [name])
    expect(sbom).toBe(readFileSync(releaseFile('.cdx.json'), 'utf8'))
  } finally {
    process.umask(umask)
  }

  const first = gunzipSync(readFileSync(releaseFile('.tar.gz')))
  expect(readFileSync(archive).equals(first)).toBe(true)
})
