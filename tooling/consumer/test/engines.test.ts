import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fetchNode, nodeProgram } from '@plant-store/harness/nodes'
import { needs } from '@plant-store/harness/vitest'
import { expect, inject, test } from 'vitest'
import { run } from '../src/run.ts'

const { folder, packages } = inject('installed')

/** The packages by the oldest Node that their `engines` name, and all by the Node that runs this. */
const byNode = Map.groupBy(
  packages.flatMap(({ name }) => {
    const { engines } = JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8'))
    const [, oldest] = /^>=(\d+(?:\.\d+)?)$/.exec(engines.node) as RegExpExecArray
    const version = [...(oldest as string).split('.'), '0', '0'].slice(0, 3).join('.')
    const short = name.replace('@plant-store/', '')
    return [version, process.versions.node].map(node => ({ node, name: short }))
  }),
  ({ node }) => node,
)

/** What the nursery's service is made of. */
const service = ['http', 'persistence']

for (const [version, users] of byNode) {
  const node = version === process.versions.node ? process.execPath : nodeProgram(version)
  // CI tests everything.
  if (process.env['CI'] && node !== process.execPath) fetchNode(version)
  const fetched = needs('older versions of Node (CI fetches them)', existsSync(node))
  const names = users.map(({ name }) => name)

  test.each(names.filter(name => !service.includes(name)))(`%s works on ${version}`, fetched, async name => {
    expect(await run(node, ['--version'], folder)).toBe(`v${version}\n`)
    expect(await run(node, ['oldest.mjs', name], folder)).toBe('works\n')
  })

  const served = names.filter(name => service.includes(name))
  if (served.length > 0)
    test(`the nursery's own tests of ${served.join(' and ')} pass on ${version}`, fetched, async () => {
      const files = ['nursery.test.ts', 'node-sqlite.test.ts']
      const report = await run(node, ['--test', '--test-reporter=tap', ...files], folder)
      expect(report).toMatch(/^# fail 0$/m)
      expect(Number(/^# pass (\d+)$/m.exec(report)?.[1])).toBeGreaterThan(10)
    })
}

test('every package names the oldest Node it works on', () => {
  expect(byNode.get(process.versions.node)).toHaveLength(packages.length)
  expect(byNode.size).toBeGreaterThan(1)
})
