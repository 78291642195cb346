import { plant } from '@plant-store/domain/testing'
import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { type Opened, shows, usePage } from './page.ts'

describe('a change by another', needs('chromium', hasBrowser), () => {
  const { open, stored, fill, replace, remove } = usePage()

  /** Opens plant 7, and types a name. */
  async function edit({ openRow, member }: Opened): Promise<void> {
    await openRow('7')
    await member('name').fill('mine')
  }

  const namesIn = ({ page }: Opened) =>
    page.locator('.states tbody tr').first().locator('td').allTextContents()

  test('is shown beside what was opened and typed', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open()
    const { press, heading, member } = opened
    await edit(opened)
    await replace(7n, 'theirs')

    await press('Save')

    const words = 'Plant 7 was changed since you opened it. Nothing was saved.'
    await heading(words).waitFor()
    expect(await namesIn(opened)).toEqual(['Ficus', 'theirs *', 'mine *'])
    await press('Go on editing')
    expect(await member('name').inputValue()).toBe('mine')
    expect(await stored(7n)).toEqual({ id: 7n, name: 'theirs' })
  })

  test('can be kept, and is in the list then', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open()
    const { press, cells, dialog } = opened
    await edit(opened)
    await replace(7n, 'theirs')
    await press('Save')

    await press('Keep what is there')

    await expect.poll(cells).toEqual(['theirs', '–'])
    expect(await dialog.count()).toBe(0)
    expect(await stored(7n)).toEqual({ id: 7n, name: 'theirs' })
  })

  test('is overwritten only in the version that was shown', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open()
    const { press, button, status } = opened
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

  test('is asked about before a plant is deleted', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open()
    const { press, openRow, heading, status } = opened
    await openRow('7')
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

  test('is asked about if it was a removal', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open()
    const { press, heading, status } = opened
    await edit(opened)
    await remove(7n)

    await press('Save')

    const words = 'Plant 7 was removed since you opened it. Nothing was saved.'
    await heading(words).waitFor()
    expect(await namesIn(opened)).toEqual(['Ficus', 'mine *'])
    await press('Save mine over it')
    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
  })
})
