import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { expect, test } from 'vitest'
import { program } from '../src/program.ts'

const intro = `# Commands

The command line of \`plant-store\`, as \`--help\` describes it. [Install](install.md) says how to get it.

<!-- Written by \`vitest run test/commands-page.test.ts -u\` in apps/cli. -->
`

/** Returns what --help prints of a command, and of each below it, with the name of each as a heading. */
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

test('docs/commands.md is what --help prints', async () => {
  const page = [intro, ...describe(program)].join('\n')
  await expect(page).toMatchFileSnapshot('../../../docs/commands.md')
})
