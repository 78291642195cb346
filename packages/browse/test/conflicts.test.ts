import { plant } from '@plant-store/domain/testing'
import { expect } from 'vitest'
import {
  button,
  cells,
  dialog,
  heading,
  member,
  openRow,
  press,
  replace,
  shows,
  states,
  status,
  store,
  stored,
  test,
} from './page.ts'

/** Types a name of plant 7. */
async function edit(): Promise<void> {
  await openRow()
  await member('name').fill('my plant')
}

test('a change by another is shown, beside what was typed, and can be kept', async () => {
  await edit()
  await replace(7n, 'theirs')

  await press('Save')

  await heading('Plant 7 was changed since you opened it. Nothing was saved.').waitFor()
  expect(await states()).toEqual([
    'Ficus',
    'theirs *',
    'my·plant *',
    'tree',
    '– *',
    'tree',
  ])
  await press('Go on editing')
  expect(await member('name').inputValue()).toBe('my plant')
  await press('Save')
  await press('Keep what is there')
  await expect.poll(cells).toEqual(['theirs', '–'])
  expect(await dialog.count()).toBe(0)
  expect(await stored(7n)).toEqual({ id: 7n, name: 'theirs' })
})

test('a change by another is overwritten only in the version that was shown', async () => {
  await edit()
  await replace(7n, 'theirs')
  await press('Save')
  await button('Save mine over it').waitFor()
  await replace(7n, 'my  plant')

  await press('Save mine over it')

  await expect.poll(states).toContain('my ·plant *')
  expect(await stored(7n)).toEqual({ id: 7n, name: 'my  plant' })
  await press('Save mine over it')
  await shows(status, 'Plant 7 is saved.')
  expect(await stored(7n)).toEqual(plant(7n, 'my plant', 'tree'))
})

test('a change by another is asked about before a plant is deleted', async () => {
  await openRow()
  // The change must follow the read.
  await member('name').waitFor()
  await replace(7n, 'theirs')
  await press('Delete')

  await press('Delete 7')

  await heading('Plant 7 was changed since you opened it. Nothing was deleted.').waitFor()
  expect(await states()).toEqual(['Ficus', 'theirs *', 'tree', '– *'])
  await press('Delete 7')
  await shows(status, 'Plant 7 is deleted.')
  expect(await stored(7n)).toBeUndefined()
})

test('a change by another is asked about if it was a removal', {
  plants: [[7n, 'Ficus']],
}, async () => {
  await edit()
  await store.fill([])

  await press('Save')

  await heading('Plant 7 was removed since you opened it. Nothing was saved.').waitFor()
  expect(await states()).toEqual(['Ficus', 'my·plant *'])
  await press('Save mine over it')
  await shows(status, 'Plant 7 is saved.')
  expect(await stored(7n)).toEqual(plant(7n, 'my plant'))
})

const long = 'x'.repeat(5_000)

test('a conflict looks different wherever its texts differ', {
  plants: [[7n, 'one tag', `${long}a${long}`]],
}, async () => {
  await openRow()
  await member('name').fill('one tag ')
  await member('tag').fill(`${long}b${long}`)
  await replace(7n, 'one  tag', `${long}а${long}`)
  await press('Save')

  await button('Save mine over it').waitFor()
  const excerpt = (sign: string) => `… ${'x'.repeat(100)}${sign}${'x'.repeat(100)} …`
  expect(await states()).toEqual([
    'one tag',
    'one ·tag *',
    'one tag· *',
    excerpt('a'),
    `${excerpt('а U+0430')} *`,
    `${excerpt('b')} *`,
  ])
})
