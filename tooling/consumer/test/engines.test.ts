import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fetchNode, nodeProgram } from '@plant-store/harness/nodes'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, inject, test } from 'vitest'
import { run } from '../src/run.ts'

const { folder, packages } = inject('installed')

const ranges = packages.map(({ name }) => {
  const { engines } = JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8'))
  const [, oldest] = /^>=(\d+(?:\.\d+)?)$/.exec(engines.node) as RegExpExecArray
  return { name, oldest: [...(oldest as string).split('.'), '0', '0'].slice(0, 3).join('.') }
})

// CI tests everything.
if (process.env['CI']) for (const { oldest } of ranges) fetchNode(oldest)

describe.each(ranges)('$name, as its engines say', ({ name, oldest }) => {
  const nodes = [
    { version: oldest, node: nodeProgram(oldest) },
    { version: process.versions.node, node: process.execPath },
  ]
  for (const { version, node } of nodes) {
    test(
      `works on ${version}`,
      needs('older versions of Node (CI fetches them)', existsSync(node)),
      async () => {
        expect(await run(node, ['--version'], folder)).toBe(`v${version}\n`)
        if (['http', 'persistence'].some(each => name.endsWith(each))) {
          const files = ['nursery.test.ts', 'node-sqlite.test.ts']
          const report = await run(node, ['--test', '--test-reporter=tap', ...files], folder)
          expect(report).toMatch(/^# fail 0$/m)
          expect(Number(/^# pass (\d+)$/m.exec(report)?.[1])).toBeGreaterThan(10)
        } else {
          const use = ['oldest.mjs', name.replace('@plant-store/', '')]
          expect(await run(node, use, folder)).toBe('works\n')
        }
      },
    )
  }
})
