import { expect, test } from 'vitest'
import { Place } from './place.ts'

const commands = [
  '',
  'serve',
  'token',
  'token create',
  'token list',
  'token revoke',
  'token export',
  'token import',
  'webhook',
  'webhook add',
  'webhook list',
  'webhook remove',
  'webhook pause',
  'webhook resume',
  'webhook retry',
  'webhook rotate',
  'webhook log',
  'courier',
  'import',
  'export',
  'backup',
  'restore',
  'check',
]

test('what --help says of each command is as it was last read through', async () => {
  await using place = new Place()
  const results = await Promise.all(
    commands.map(command => place.run([...command.split(' ').filter(Boolean), '--help'])),
  )
  for (const { code, stderr } of results) expect([code, stderr]).toEqual([0, ''])
  // Read the difference, then write the new one with `vitest run -u`.
  await expect(results.map(({ stdout }) => stdout).join('\n')).toMatchFileSnapshot('help.snapshot')
})

test('every command is one of those', async () => {
  await using place = new Place()
  const listed = async (...parent: string[]) => {
    const { stdout } = await place.run([...parent, '--help'])
    const names =
      stdout
        .split('Commands:\n')[1]
        ?.split('\n\n')[0]
        ?.matchAll(/^ {2}([a-z]+)/gm) ?? []
    return Array.from(names, ([, name]) => [...parent, name].join(' ')).filter(name => !name.endsWith('help'))
  }
  const found = ['', ...(await listed()), ...(await listed('token')), ...(await listed('webhook'))]
  expect(found.toSorted()).toEqual(commands.toSorted())
})
