import {
  chmodSync,
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import { writeTar } from './archive.ts'
import { debianPackageOf, librariesOf } from './libraries.ts'
import { run } from './run.ts'

/** A user without a name or rights: a number that systems do not assign. */
const uid = 10_001

const program =
  '#!/opt/plant-store/lib/node\nimport("/opt/plant-store/lib/plant-store/dist/main.js")\n'

/**
 * Makes the file system of a container from the release folder: that folder and the
 * libraries it loads, without a shell.
 *
 * @param release the folder
 */
export function makeRoot(release: string, root: string): void {
  rmSync(root, { recursive: true, force: true })
  cpSync(release, join(root, 'opt/plant-store'), { recursive: true })
  const loaded = globSync(['lib/node', 'lib/**/*.node'], { cwd: release }).flatMap(file =>
    librariesOf(join(release, file)),
  )
  for (const library of new Set(loaded)) {
    copy(library, join(root, library))
    const { name, text } = debianPackageOf(library)
    write(join(root, 'usr/share/doc', name, 'copyright'), text)
  }
  write(join(root, 'etc/passwd'), `root:x:0:0::/:\nplant-store:x:${uid}:${uid}::/data:\n`)
  write(join(root, 'etc/group'), `root:x:0:\nplant-store:x:${uid}:\n`)
  // The program of the folder needs a shell.
  write(join(root, 'usr/local/bin/plant-store'), program, 0o755)
  copy(
    join(import.meta.dirname, 'health.cjs'),
    join(root, 'usr/local/bin/plant-store-health'),
  )
}

function copy(file: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  copyFileSync(file, to)
}

function write(file: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  chmodSync(file, mode)
}

const config = [
  ...['--config.user', `${uid}:${uid}`],
  ...['--config.entrypoint', 'plant-store'],
  ...['--config.cmd', 'serve'],
  ...['--config.workingdir', '/data'],
  ...['--config.volume', '/data'],
  ...['--config.exposedports', '3000/tcp'],
  ...['--config.env', 'PATH=/usr/local/bin'],
  ...['--config.env', 'HOST=0.0.0.0'],
  ...['--config.env', 'DATABASE_URL=file:/data/plants.db'],
  ...['--config.env', 'MALLOC_ARENA_MAX=2'],
  ...['--config.env', 'MALLOC_TRIM_THRESHOLD_=131072'],
]

/** The same for every build. */
const date = '2000-01-01T00:00:00Z'

/** Writes the file system as an image archive in OCI layout. */
export async function writeImage(
  root: string,
  tag: string,
  archive: string,
): Promise<void> {
  using work = temporaryFolder()
  const at = (name: string) => join(work.path, name)
  const image = `${at('layout')}:${tag}`
  const umoci = (...args: readonly string[]) => run('umoci', ...args)
  await writeTar(['etc', 'lib', 'lib64', 'opt', 'usr'], at('programs.tar'), {
    from: root,
  })
  mkdirSync(at('data'))
  await writeTar(['data'], at('data.tar'), { from: work.path, uid })
  umoci('init', '--layout', at('layout'))
  umoci('new', '--image', image)
  for (const layer of ['programs.tar', 'data.tar']) {
    umoci('raw', 'add-layer', '--history.created', date, '--image', image, at(layer))
  }
  umoci(
    'config',
    '--history.created',
    date,
    '--created',
    date,
    ...config,
    '--image',
    image,
  )
  umoci('gc', '--layout', at('layout'))
  await writeTar(['.'], archive, { from: at('layout') })
}
