import { plant } from '@plant-store/domain/testing'
import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { hold, holdKey, type Steps, several, shows, usePage } from './page.ts'

describe('a form', needs('chromium', hasBrowser), () => {
  const { open, stored, fill, replace, ...fixture } = usePage()

  describe('an answer belongs to its form', () => {
    test('a late answer says what became of it, and closes no other form', async () => {
      await fill([5n, 'five'], [9n, 'nine'])
      await using opened = await open()
      const { page, openRow, press, member, status, heading, cells } = opened
      const release = await hold(page, 'PUT', '5')
      await openRow('5')
      await member('name').fill('five again')
      await press('Save')
      await press('Close')
      await openRow('9')
      await member('name').fill('typed')

      release()

      await shows(status, 'Plant 5 is saved.')
      await expect.poll(cells).toEqual(['five again', '–', 'nine', '–'])
      expect(await heading('Plant 9').isVisible()).toBe(true)
      expect(await member('name').inputValue()).toBe('typed')
    })

    test('a late failure keeps what was typed, and touches no other form', async () => {
      await fill([5n, 'five'], [9n, 'nine'])
      await using opened = await open()
      const { page, openRow, press, member, heading } = opened
      const release = await hold(page, 'PUT', '5')
      await openRow('5')
      await member('name').fill('mine')
      await press('Save')
      await press('Close')
      await replace(5n, 'theirs')
      await openRow('9')
      await member('name').fill('typed')

      release()

      const words = 'Plant 5 was changed since you opened it. Nothing was saved.'
      await shows(page.locator('#unsaved'), words)
      expect(await member('name').inputValue()).toBe('typed')
      await press('Close')
      await press('Discard what I typed')
      await press('Go on editing')
      await heading('Plant 5').waitFor()
      expect(await member('name').inputValue()).toBe('mine')
      await press('Save')
      await page.getByRole('heading', { name: words }).waitFor()
    })

    test('signing out empties the forms that were closed', async () => {
      await fill([5n, 'SECRET'])
      await using opened = await open()
      const { page, openRow, press, member } = opened
      const release = await hold(page, 'PUT', '5', 'abort')
      await openRow('5')
      await member('name').fill('SECRET, too')
      await press('Save')
      await press('Close')
      release()
      await shows(
        page.locator('#unsaved'),
        'Plant 5: It was not saved: the store did not answer',
      )

      await press('Sign out')
      await shows(page.locator('body > dialog'), 'Plant 5 is not saved.')
      await press('Discard what I typed')

      await page.getByLabel('Access token').waitFor()
      const html = await page.content()
      expect(html).not.toContain('SECRET')
      expect(await page.locator('#unsaved').textContent(), 'a way back').toBe('')
    })
  })

  describe('every way out asks when something was typed', () => {
    const ways: readonly (readonly [name: string, leave: Steps])[] = [
      ['Close', ({ press }) => press('Close')],
      ['Escape', ({ page }) => page.keyboard.press('Escape')],
      ['Back', ({ page }) => page.evaluate(() => history.back())],
      ['another place', ({ page }) => page.evaluate(() => location.assign('#plants/9'))],
    ]

    test.each(ways)('%s', async (_way, leave) => {
      await fill([7n, 'Ficus'], [9n, 'nine'])
      await using opened = await open()
      const { openRow, press, member, heading, form } = opened
      await openRow('7')
      await member('name').fill('typed')

      await leave(opened)
      await heading('Plant 7 is not saved.').waitFor()
      await expect.poll(opened.focused).toBe('Go on editing')
      await press('Go on editing')
      await expect.poll(opened.hash).toBe('#plants/7')
      expect(await member('name').inputValue()).toBe('typed')

      await leave(opened)
      await press('Discard what I typed')
      await expect.poll(opened.hash).not.toBe('#plants/7')
      await expect.poll(() => form.getByText('Plant 7').count()).toBe(0)
    })

    test('reload and the end of the tab', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { page, openRow, member } = opened
      await openRow('7')
      await member('name').fill('typed')
      const asked: string[] = []
      page.on('dialog', dialog => {
        asked.push(dialog.type())
        dialog.dismiss()
      })

      await page.evaluate(() => setTimeout(() => location.reload()))
      await expect.poll(() => asked).toEqual(['beforeunload'])
      await page.close({ runBeforeUnload: true })
      await expect.poll(() => asked).toEqual(['beforeunload', 'beforeunload'])

      expect(await member('name').inputValue()).toBe('typed')
    })

    test('the link to a taken id opens beside what was typed', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { follow, press, member, heading } = opened
      await press('New')
      await member('id').fill('7')
      await member('name').fill('typed')
      await press('Save')
      await follow('id 7 exists')
      await heading('Plant 7').waitFor()
      expect(await member('name').inputValue()).toBe('Ficus')

      await press('Close')

      await heading('New plant').waitFor()
      expect(await member('name').inputValue()).toBe('typed')
    })

    test('a form in which nothing was typed closes at once', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { page, openRow, form } = opened
      await openRow('7')
      await form.waitFor()
      await page.keyboard.press('Escape')
      await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
      await openRow('7')
      await form.waitFor()
      await page.goBack()
      await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
    })
  })

  test('a text costs its length once, and is shown from its beginning', async () => {
    await fill([7n, 'a line\n'.repeat(200)])
    await using opened = await open({ place: '#plants/7', prepare: noteDirections })
    const { page, member } = opened

    await member('name').waitFor()

    const start = () => {
      const control = document.activeElement
      return control instanceof HTMLTextAreaElement
        ? [control.dir, control.selectionStart, control.scrollTop]
        : undefined
    }
    expect(await page.evaluate(start)).toEqual(['auto', 0, 0])
    // With `auto`, Chromium looks at the whole text again for each line of it.
    expect(await page.evaluate('directions')).toEqual(['', ''])
  })

  describe('what deletes is never what the next key answers', () => {
    test('the focus of a question is on the harmless button', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { page, openRow, press, focused, member } = opened
      await openRow('7')
      await press('Delete')
      await expect.poll(focused).toBe('Keep it')
      await page.keyboard.press('Enter')
      await member('name').fill('mine')
      await replace(7n, 'theirs')
      await press('Save')
      await expect.poll(focused).toBe('Go on editing')
    })

    test('a held key answers nothing', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { page, row, openRow, button, press, member, heading } = opened
      await openRow('7')
      await button('Delete').focus()
      await holdKey(page, 'Enter')
      await heading('Delete Ficus (7)?').waitFor()
      await press('Delete 7')
      await expect.poll(() => stored(7n)).toBeUndefined()

      await fill([7n, 'Ficus'])
      await opened.reload()
      await row('7').locator('a').first().focus()
      await page.keyboard.down('Enter')
      await member('name').waitFor()
      await holdKey(page, 'Enter')
      expect(await member('name').inputValue()).toBe('Ficus')
    })

    test('a held key still goes from row to row, and types', async () => {
      await fixture.store().fill(several)
      await using opened = await open()
      const { page, rows, row, focused, filter } = opened
      await shows(rows, '100 rows, more follow')
      await row('10').locator('a').first().focus()
      await holdKey(page, 'Tab')
      expect(await focused()).toBe('15')
      await filter('tag').focus()
      await holdKey(page, 'x')
      expect(await filter('tag').inputValue()).toBe('xxxxx')
    })
  })

  describe('what is on its way is said', () => {
    test('a form says that it saves, and takes no text meanwhile', async () => {
      await fill([7n, 'Ficus', 'tree'])
      await using opened = await open()
      const { page, openRow, press, member, form, status } = opened
      const release = await hold(page, 'PUT', '7')
      await openRow('7')
      await member('name').fill('mine')
      await press('Save')
      await shows(form.getByRole('status'), 'Saving …')
      await member('name').focus()
      await page.keyboard.type('lost')
      expect(await member('name').inputValue()).toBe('mine')
      release()
      await shows(status, 'Plant 7 is saved.')
      expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
    })

    test('the list says that it loads', async () => {
      await fixture.store().fill(several)
      await using opened = await open()
      const { rows, press } = opened
      await shows(rows, '100 rows, more follow')
      const release = fixture.store().holdListsAfter(0)
      await press('Next')
      await shows(rows, 'Loading …')
      expect(await rows.textContent()).toBe('Loading …')
      release()
      await shows(rows, '100 rows, more follow')
    })

    test('a record says that it loads', async () => {
      await fill([7n, 'Ficus'])
      await using opened = await open()
      const { page, openRow, status, heading } = opened
      const release = await hold(page, 'GET', '7')
      await openRow('7')
      await shows(status, 'Loading plant 7 …')
      release()
      await heading('Plant 7').waitFor()
    })
  })
})

/** Keeps the direction that each text area has when it gets its text. */
function noteDirections(): void {
  const directions: string[] = []
  const value = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value')
  Object.defineProperty(HTMLTextAreaElement.prototype, 'value', {
    ...value,
    set(this: HTMLTextAreaElement, text: string) {
      directions.push(this.dir)
      value?.set?.call(this, text)
    },
  })
  Object.assign(window, { directions })
}
