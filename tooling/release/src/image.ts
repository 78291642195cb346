import { copyFileSync, cpSync, globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import { debianPackageOf, librariesOf } from './libraries.ts'
import { run, writeTar } from './run.ts'

/** A user without a name or rights: a number that systems do not assign. */
export const uid = 10_001

/**
 * Makes the file system of a container from the release folder: that folder and the
 * libraries it loads, without a shell.
 *
 * @param release the folder
 */
export function makeRoot(release: string, root: string): void {
  rmSync(root, { recursive: true, force: true })
  cpSync(release, join(root, 'opt/plant-store'), { recursive: true })
  const programs = globSync(['lib/node', 'lib/**/*.node'], { cwd: release })
  const loaded = programs.flatMap(file => librariesOf(join(release, file)))
  for (const library of new Set(loaded)) {
    const { name, text } = debianPackageOf(library)
    copyInto(root, library)
    write(root, join('usr/share/doc', name, 'copyright'), text)
  }
  write(root, 'etc/passwd', `root:x:0:0::/:\nplant-store:x:${uid}:${uid}::/data:\n`)
  write(root, 'etc/group', `root:x:0:\nplant-store:x:${uid}:\n`)
  // The program of the folder needs a shell.
  const main = '/opt/plant-store/lib/plant-store/dist/main.js'
  const program = `#!/opt/plant-store/lib/node\nimport("${main}")\n`
  write(root, 'usr/local/bin/plant-store', program, 0o755)
  const health = join(import.meta.dirname, 'health.cjs')
  copyInto(root, health, 'usr/local/bin/plant-store-health')
}

/** Copies a file to the same path, or to another, below a folder. */
export function copyInto(root: string, file: string, to = file): void {
  mkdirSync(dirname(join(root, to)), { recursive: true })
  copyFileSync(file, join(root, to))
}

function write(root: string, path: string, text: string, mode = 0o644) {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text, { mode })
}

/** Says the same as `deploy/Dockerfile`, in the options of umoci. */
const config = {
  user: [`${uid}:${uid}`],
  entrypoint: ['plant-store'],
  cmd: ['serve'],
  workingdir: ['/data'],
  volume: ['/data'],
  exposedports: ['3000/tcp'],
  env: [
    'PATH=/usr/local/bin',
    'HOST=0.0.0.0',
    'DATABASE_URL=file:/data/plants.db',
    'MALLOC_ARENA_MAX=2',
    'MALLOC_TRIM_THRESHOLD_=131072',
  ],
}

/** The same for every build. */
const date = '2000-01-01T00:00:00Z'

/** Writes the file system as an image archive in OCI layout. */
export function writeImage(root: string, tag: string, archive: string): void {
  using work = temporaryFolder()
  const at = (name: string) => join(work.path, name)
  const layout = ['--layout', at('layout')]
  const image = ['--image', `${at('layout')}:${tag}`]
  writeTar(at('programs.tar'), root, ['etc', 'lib', 'lib64', 'opt', 'usr'])
  mkdirSync(at('data'))
  writeTar(at('data.tar'), work.path, ['data'], uid)
  const options = Object.entries(config).flatMap(([name, values]) =>
    values.flatMap(value => [`--config.${name}`, value]),
  )
  const history = ['--history.created', date]
  for (const command of [
    ['init', ...layout],
    ['new', ...image],
    ['raw', 'add-layer', ...history, ...image, at('programs.tar')],
    ['raw', 'add-layer', ...history, ...image, at('data.tar')],
    ['config', ...history, '--created', date, ...options, ...image],
    ['gc', ...layout],
  ]) {
    run('umoci', ...command)
  }
  writeTar(archive, at('layout'), ['.'])
}
