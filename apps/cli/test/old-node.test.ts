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
    const [, needed] = /^>=(\d+)$/.exec(engines.node) as RegExpExecArray
    const start = (version: string) =>
      spawnSync(
        process.execPath,
        [
          '--import',
          pretended(version),
          fileURLToPath(new URL('dist/main.js', manifest)),
          '--version',
        ],
        { encoding: 'utf8' },
      )
    const tooOld = `${Number(needed) - 1}.99.0`
    expect(start(tooOld)).toMatchObject({
      status: 1,
      stdout: '',
      stderr: `plant-store: Node ${tooOld} is too old; install Node ${needed} or later\n`,
    })
    expect(start(`${needed}.0.0`).stderr).toMatch(/loaded \.\/(serve|program)-/)
  },
)
