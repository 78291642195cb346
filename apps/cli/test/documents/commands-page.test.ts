import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { expect, test } from 'vitest'
import { program } from '../../src/program.ts'

const pagePath = new URL('../../../../docs/commands.md', import.meta.url)
const marker =
  '<!-- Written by `vitest run --mode tooling commands-page -u` in apps/cli. -->\n'

/**
 * Returns what --help prints of a command, and of each below it, with the name of each
 * as a heading.
 */
function describe(command: CommandUnknownOpts, above = ''): readonly string[] {
  const name = `${above}${command.name()}`
  let help = ''
  const writeOut = (part: string) => {
    help += part
  }
  command.configureOutput({ writeOut, getOutHelpWidth: () => 120 }).outputHelp()
  const section = `## ${name}\n\n\`\`\`text\n${help}\`\`\`\n`
  return [section, ...command.commands.flatMap(each => describe(each, `${name} `))]
}

test('docs/commands.md ends with what --help prints', async () => {
  const [writtenByHand = ''] = readFileSync(pagePath, 'utf8').split(marker)

  const page = [writtenByHand + marker, ...describe(program)].join('\n')

  await expect(page).toMatchFileSnapshot(fileURLToPath(pagePath))
})
