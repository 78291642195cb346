import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

/**
 * Makes this Node say that it is another, and load nothing but itself and the file that
 * is started.
 */
const pretended = (version: string) =>
  `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  Object.defineProperty(process.versions, 'node', { value: '${version}' })
  registerHooks({
    resolve(specifier, context, next) {
      if (!/^node:|main\\.js$/.test(specifier)) throw new Error('loaded ' + specifier)
      return next(specifier, context)
    },
  })
`)}`

const programs = {
  server: new URL('../../api/package.json', import.meta.url),
  'command line': new URL('../package.json', import.meta.url),
}

test.each(Object.entries(programs))(
  'the %s says which Node it needs, before it loads anything',
  (_, manifest) => {
    const { engines } = JSON.parse(readFileSync(manifest, 'utf8'))
    const needed = engines.node.replace('>=', '')
    const version = `${needed - 1}.99.0`
    const program = fileURLToPath(new URL('dist/main.js', manifest))

    const { status, stderr } = spawnSync(
      process.execPath,
      ['--import', pretended(version), program],
      { encoding: 'utf8' },
    )

    expect(status).toBe(1)
    expect(stderr).toBe(
      `plant-store: Node ${version} is too old; install Node ${needed} or later\n`,
    )
  },
)
