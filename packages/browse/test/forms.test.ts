import { plant } from '@plant-store/domain/testing'
import { describe, expect } from 'vitest'
import { type Steps, several, shows, test } from './page.ts'

describe('an answer belongs to its form', () => {
  const plants = [
    [5n, 'five'],
    [9n, 'nine'],
  ] as const

  /** Saves another name of plant 5, closes its form, and types in that of plant 9. */
  const saveAndGoOn: Steps = async ({ openRow, press, member }) => {
    await openRow('5')
    await member('name').fill('mine')
    await press('Save')
    await press('Close')
    await openRow('9')
    await member('name').fill('typed')
  }

  test('a late answer says what became of it, and closes no other form', {
    plants,
  }, async opened => {
    const { hold, member, status, heading, cells } = opened
    const release = await hold('PUT')
    await saveAndGoOn(opened)

    release()

    await shows(status, 'Plant 5 is saved.')
    await expect.poll(cells).toEqual(['mine', '–', 'nine', '–'])
    expect(await heading('Plant 9').isVisible()).toBe(true)
    expect(await member('name').inputValue()).toBe('typed')
  })

  test('a late failure keeps what was typed, and touches no other form', {
    plants,
  }, async opened => {
    const { hold, press, member, heading, replace, unsaved } = opened
    const release = await hold('PUT')
    await saveAndGoOn(opened)
    await replace(5n, 'theirs')

    release()

    const words = 'Plant 5 was changed since you opened it. Nothing was saved.'
    await shows(unsaved, words)
    expect(await member('name').inputValue()).toBe('typed')
    await press('Close')
    await press('Discard what I typed')
    await press('Go on editing')
    await heading('Plant 5').waitFor()
    expect(await member('name').inputValue()).toBe('mine')
    await press('Save')
    await heading(words).waitFor()
  })

  test('signing out empties the forms that were closed', {
    plants: [[7n, 'SECRET']],
  }, async ({ page, hold, openRow, press, member, unsaved, tokenField }) => {
    const release = await hold('PUT', 'abort')
    await openRow()
    await member('name').fill('SECRET, too')
    await press('Save')
    await press('Close')
    release()
    await shows(unsaved, 'Plant 7: It was not saved: the store did not answer')

    await press('Sign out')
    await shows(page.locator('body > dialog'), 'Plant 7 is not saved.')
    await press('Discard what I typed')

    await tokenField.waitFor()
    expect(await page.content()).not.toContain('SECRET')
    expect(await unsaved.textContent(), 'a way back').toBe('')
  })
})

describe('every way out asks when something was typed', () => {
  const ways: readonly (readonly [name: string, leave: Steps])[] = [
    ['Close', ({ press }) => press('Close')],
    ['Escape', ({ page }) => page.keyboard.press('Escape')],
    ['Back', ({ page }) => page.evaluate(() => history.back())],
    ['another place', ({ goTo }) => goTo('#plants/9')],
  ]

  for (const [way, leave] of ways) {
    test(way, {
      plants: [
        [7n, 'Ficus'],
        [9n, 'nine'],
      ],
    }, async opened => {
      const { openRow, press, member, heading, form, hash, focused } = opened
      await openRow()
      await member('name').fill('typed')

      await leave(opened)
      await heading('Plant 7 is not saved.').waitFor()
      await expect.poll(focused).toBe('Go on editing')
      await press('Go on editing')
      await expect.poll(hash).toBe('#plants/7')
      expect(await member('name').inputValue()).toBe('typed')

      await leave(opened)
      await press('Discard what I typed')
      await expect.poll(hash).not.toBe('#plants/7')
      await expect.poll(() => form.getByText('Plant 7').count()).toBe(0)
    })
  }

  test('reload and the end of the tab', async ({ page, openRow, member }) => {
    await openRow()
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

  test('the link to a taken id opens beside what was typed', async ({
    follow,
    press,
    member,
    heading,
  }) => {
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

  test('a form in which nothing was typed closes at once', async ({
    page,
    openRow,
    form,
    dialog,
  }) => {
    for (const leave of [() => page.keyboard.press('Escape'), () => page.goBack()]) {
      await openRow()
      await form.waitFor()
      await leave()
      await expect.poll(() => dialog.count(), { message: `${leave}` }).toBe(0)
    }
  })
})

test('a text costs its length once, and is shown from its beginning', {
  plants: [[7n, 'Ficus', 'a line\n'.repeat(200)]],
  place: '#plants/7',
  prepare: noteDirections,
}, async ({ page, member }) => {
  await member('tag').waitFor()
  await member('tag').focus()

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
  test('the focus of a question is on the harmless button', async ({
    page,
    openRow,
    press,
    focused,
    member,
    replace,
  }) => {
    await openRow()
    await press('Delete')
    await expect.poll(focused).toBe('Keep it')
    await page.keyboard.press('Enter')
    await member('name').fill('mine')
    await replace(7n, 'theirs')
    await press('Save')
    await expect.poll(focused).toBe('Go on editing')
  })

  test('a held key answers nothing', async ({
    page,
    link,
    holdKey,
    openRow,
    button,
    press,
    member,
    heading,
  }) => {
    await openRow()
    await button('Delete').focus()
    await holdKey('Enter')
    await heading('Delete Ficus (7)?').waitFor()
    await press('Keep it')
    await press('Close')

    await link('7').focus()
    await page.keyboard.down('Enter')
    await member('name').waitFor()
    await holdKey('Enter')
    expect(await member('name').inputValue()).toBe('Ficus')
  })

  test('a held key still goes from row to row, and types', {
    plants: several,
  }, async ({ link, focused, filter, holdKey }) => {
    await link('10').focus()
    await holdKey('Tab')
    expect(await focused()).toBe('15')
    await filter('tag').focus()
    await holdKey('x')
    expect(await filter('tag').inputValue()).toBe('xxxxx')
  })
})

describe('what is on its way is said', () => {
  test('a form takes no text while it saves, and keeps what comes', async ({
    page,
    hold,
    openRow,
    press,
    member,
    form,
    alert,
    stored,
  }) => {
    const release = await hold('PUT')
    await openRow()
    await member('name').fill('mine')
    await press('Save')
    await shows(form.getByRole('status'), 'Saving …')
    await member('name').focus()
    await page.keyboard.type('lost')
    expect(await member('name').inputValue()).toBe('mine')
    // As an extension does, which no field can hold back.
    await member('name').evaluate(field => Object.assign(field, { value: 'more' }))

    release()

    await shows(alert, 'Saved without what was typed meanwhile')
    expect(await member('name').inputValue()).toBe('more')
    expect(await stored(7n)).toEqual(plant(7n, 'mine', 'tree'))
  })

  test('the list says that it loads', { plants: several }, async ({
    rows,
    press,
    store,
  }) => {
    await shows(rows, '100 rows, more follow')
    const release = store.holdListsAfter(0)
    await press('Next')
    await expect.poll(() => rows.textContent()).toBe('Loading …')
    release()
    await shows(rows, '100 rows, more follow')
  })

  test('a record says that it loads, also on a translated page', async ({
    page,
    hold,
    openRow,
    status,
    heading,
  }) => {
    const release = await hold('GET')
    await openRow()
    await shows(status, 'Loading plant 7 …')
    const happened = page.locator('#happened')
    await happened.evaluate(message => message.replaceChildren('Lade …'))
    release()
    await heading('Plant 7').waitFor()
    await expect.poll(() => happened.textContent()).toBe('')
  })
})

test('a plant that is opened before its form has come waits for it', async ({
  page,
  openRow,
  row,
  reload,
  status,
  heading,
}) => {
  await page.route('**/forms.js', route => route.abort())
  await reload()
  await openRow()
  const words = 'Not opened: the form did not come. Reload this page'
  await shows(row('7').getByRole('alert'), words)

  const released = Promise.withResolvers<void>()
  await page.unrouteAll()
  await page.route('**/forms.js', route => released.promise.then(() => route.continue()))
  await reload()
  await openRow()
  await shows(status, 'Loading plant 7 …')
  released.resolve()

  await heading('Plant 7').waitFor()
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
