import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { launch, startServer } from '@plant-store/harness'
import { nodeOf } from '@plant-store/harness/npm-program'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, inject, test } from 'vitest'
import { run, runIn } from '../src/run.ts'
import { oldestNode, tooOld } from './install.ts'
import { assertCreates, assertReads, made } from './machine.ts'

/** The packed program, as npm installed it. */
const { program, programFolder: folder, folder: service } = inject('installed')
await made(service)
const main = join(folder, 'node_modules/plant-store/dist/main.js')

test('npm installs three packages, and runs none of their scripts', () => {
  const installed = globSync('node_modules/*/package.json', { cwd: folder }).map(path => {
    const {
      name,
      scripts = {},
      gypfile,
    } = JSON.parse(readFileSync(join(folder, path), 'utf8'))
    const isCompiled =
      existsSync(join(folder, path, '../binding.gyp')) && gypfile !== false
    return {
      name,
      runs:
        isCompiled ||
        Object.keys(scripts).some(each => /^(pre|post)?install$/.test(each)),
    }
  })
  const byName = installed.sort((a, b) => a.name.localeCompare(b.name))
  expect(byName).toEqual([
    { name: 'better-sqlite3', runs: false },
    { name: 'node-addon-api', runs: false },
    { name: 'plant-store', runs: false },
  ])
})

test('the program contains its libraries and their terms, except SQLite', () => {
  const { source, tarball } = program
  const packed = run('tar', '-tzf', tarball).trim().split('\n')
  const built = globSync('dist/**/*.*', { cwd: source }).filter(
    file => !file.endsWith('.map'),
  )
  expect(built).toContain('dist/docs/swagger-ui-bundle.js')
  const expected = ['LICENSE', 'README.md', 'package.json', ...built]
  const contained = packed.map(file => file.replace('package/', ''))
  expect(contained.sort()).toEqual(expected.sort())
  const manifest = JSON.parse(run('tar', '-xzOf', tarball, 'package/package.json'))
  expect(Object.keys(manifest.dependencies)).toEqual(['better-sqlite3'])

  // The comments of esbuild say where each part came from.
  const code = built.filter(file => file.endsWith('.js') && !file.includes('docs/'))
  const texts = code.map(file => readFileSync(join(source, file), 'utf8'))
  const text = texts.join('\n')
  const origins = text.matchAll(/^\/\/ .*\/node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\//gm)
  const libraries = new Set<string>()
  for (const [, name = ''] of origins) {
    libraries.add(name)
  }
  expect([...libraries]).toEqual(
    expect.arrayContaining(['commander', 'fastify', 'pg', 'pino']),
  )
  const terms = readFileSync(join(source, 'dist/third-party.txt'), 'utf8')
  for (const name of libraries) {
    expect(terms, name).toMatch(new RegExp(`^${name} \\d\\S* \\(\\S.*\\)$`, 'm'))
  }
})

const oldest = oldestNode(program.source)
const fetched = (version: string) =>
  needs('older versions of Node (CI fetches them)', existsSync(nodeOf(version).path))

test(
  'a Node that is too old gets one line that says which one is needed',
  fetched(tooOld),
  async () => {
    await using started = launch([nodeOf(tooOld).path, main, 'serve'])
    expect(await started.ended).toBe(1)
    const stderr = `plant-store: Node ${tooOld} is too old; install Node 24 or later\n`
    expect(started.output()).toBe('')
    expect(started.errors()).toBe(stderr)
  },
)

test.for([
  [process.versions.node, process.execPath],
  [oldest, nodeOf(oldest).path],
] as const)('it serves on Node %s', async ([, node], { skip }) => {
  skip(!existsSync(node), 'older versions of Node are missing (CI fetches them)')
  const place = temporaryFolder()
  await using server = await startServer({
    folder: place,
    command: [node, main, 'serve'],
  })
  const token = runIn(place, node, main, 'token', 'create', '--name', 'shop').trim()
  await assertCreates(server.url, token)
  await assertReads(server.url, token)
  expect((await fetch(`${server.url}/docs/swagger-ui-bundle.js`)).status).toBe(200)
  expect(runIn(place, node, main, 'export')).toBe('{"id":1,"name":"Monstera"}\n')
  expect(await server.end()).toBe(0)
  expect(server.errors()).toBe('')
})
