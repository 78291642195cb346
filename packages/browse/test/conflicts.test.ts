import { plant } from '@plant-store/domain/testing'
import { expect } from 'vitest'
import { type Opened, shows, test } from './page.ts'

/** Types a name of plant 7. */
async function edit({ openRow, member }: Opened): Promise<void> {
  await openRow()
  await member('name').fill('mine')
}

const namesIn = ({ page }: Opened) =>
  page.locator('.states tbody tr').first().locator('td').allTextContents()

test('a change by another is shown, beside what was typed, and can be kept', async opened => {
  const { press, heading, member, cells, dialog, stored, replace } = opened
  await edit(opened)
  await replace(7n, 'theirs')

  await press('Save')

  const words = 'Plant 7 was changed since you opened it. Nothing was saved.'
  await heading(words).waitFor()
  expect(await namesIn(opened)).toEqual(['Ficus', 'theirs *', 'mine *'])
  await press('Go on editing')
  expect(await member('name').inputValue()).toBe('mine')
  await press('Save')
  await press('Keep what is there')
  await expect.poll(cells).toEqual(['theirs', '–'])
  expect(await dialog.count()).toBe(0)
  expect(await stored(7n)).toEqual({ id: 7n, name: 'theirs' })
})

test('a change by another is overwritten only in the version that was shown', async opened => {
  const { press, button, status, stored, replace } = opened
  await edit(opened)
  await replace(7n, 'theirs')
  await press('Save')
  await button('Save mine over it').waitFor()
  await replace(7n, 'theirs again')

  await press('Save mine over it')

  const states = ['Ficus', 'theirs·again *', 'mine *']
  await expect.poll(() => namesIn(opened)).toEqual(states)
  expect(await stored(7n)).toEqual({ id: 7n, name: 'theirs again' })
  await press('Save mine over it')
  await shows(status, 'Plant 7 is saved.')
  expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
})

test('a change by another is asked about before a plant is deleted', async opened => {
  const { press, openRow, heading, status, stored, replace } = opened
  await openRow()
  await replace(7n, 'theirs')
  await press('Delete')

  await press('Delete 7')

  const words = 'Plant 7 was changed since you opened it. Nothing was deleted.'
  await heading(words).waitFor()
  expect(await namesIn(opened)).toEqual(['Ficus', 'theirs *'])
  await press('Delete 7')
  await shows(status, 'Plant 7 is deleted.')
  expect(await stored(7n)).toBeUndefined()
})

test('a change by another is asked about if it was a removal', async opened => {
  const { press, heading, status, stored, store } = opened
  await edit(opened)
  await store.fill([])

  await press('Save')

  const words = 'Plant 7 was removed since you opened it. Nothing was saved.'
  await heading(words).waitFor()
  expect(await namesIn(opened)).toEqual(['Ficus', 'mine *'])
  await press('Save mine over it')
  await shows(status, 'Plant 7 is saved.')
  expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
})

test('a conflict looks different wherever its texts differ', {
  plants: [[7n, 'one tag', `${'x'.repeat(5_000)}a${'x'.repeat(5_000)}`]],
}, async opened => {
  const { openRow, press, member, heading, replace, states } = opened
  const long = 'x'.repeat(5_000)
  await openRow()
  await member('name').fill('one tag ')
  await member('tag').fill(`${long}b${long}`)
  await replace(7n, 'one  tag', `${long}а${long}`)
  await press('Save')

  await heading('Plant 7 was changed since you opened it.').waitFor()
  const context = 'x'.repeat(100)
  const excerpt = (sign: string) => `… ${context}${sign}${context} …`
  expect(await states()).toEqual([
    'one tag',
    'one ·tag *',
    'one tag· *',
    excerpt('a'),
    `${excerpt('а U+0430')} *`,
    `${excerpt('b')} *`,
  ])
})
