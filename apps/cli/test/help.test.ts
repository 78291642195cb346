import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { expect, test } from 'vitest'
import { program } from '../src/program.ts'

/** Returns the command, and each command below it. */
function withCommands(command: CommandUnknownOpts): readonly CommandUnknownOpts[] {
  return [command, ...command.commands.flatMap(withCommands)]
}

test('what --help says of each command is as it was last read through', async () => {
  const helps = withCommands(program).map(command => {
    let text = ''
    const writeOut = (part: string) => {
      text += part
    }
    command.configureOutput({ writeOut, getOutHelpWidth: () => 80 }).outputHelp()
    return text
  })
  // Read the difference, then write the new one with `vitest run -u`.
  await expect(helps.join('\n')).toMatchFileSnapshot('help.snapshot')
})
