import { expect } from 'vitest'
import {
  alert,
  button,
  cells,
  dialog,
  filter,
  focused,
  follow,
  form,
  goTo,
  hash,
  heading,
  hold,
  holdKey,
  link,
  member,
  openRow,
  page,
  press,
  refusal,
  reload,
  replace,
  row,
  type Steps,
  several,
  shows,
  status,
  test,
  tokenField,
  unsaved,
} from './page.ts'

const plants = [
  [5n, 'five'],
  [9n, 'nine'],
] as const

/** Saves another name of plant 5, closes its form, and opens that of plant 9. */
const saveAndOpen: Steps = async () => {
  await openRow('5')
  await member('name').fill('mine')
  await press('Save')
  await press('Close')
  await openRow('9')
}

const saveAndGoOn: Steps = async () => {
  await saveAndOpen()
  await member('name').fill('typed')
}

test('a late answer says what became of it, and closes no other form', {
  plants,
}, async () => {
  const release = await hold('PUT')
  await saveAndGoOn()

  release()

  await shows(status, 'Plant 5 is saved.')
  await expect.poll(cells).toEqual(['mine', '–', 'nine', '–'])
  expect(await heading('Plant 9').isVisible()).toBe(true)
  expect(await member('name').inputValue()).toBe('typed')
})

test('a late failure keeps what was typed, and touches no other form', {
  plants,
}, async () => {
  const release = await hold('PUT')
  await saveAndGoOn()
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
}, async () => {
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

const ways: Readonly<Record<string, Steps>> = {
  Close: () => press('Close'),
  Escape: () => page.keyboard.press('Escape'),
  Back: () => page.evaluate(() => history.back()),
  'another place': () => goTo('#plants/9'),
}

for (const [way, leave] of Object.entries(ways)) {
  test(`${way} asks when something was typed`, {
    plants: [
      [7n, 'Ficus'],
      [9n, 'nine'],
    ],
  }, async () => {
    await openRow()
    await member('name').fill('typed')

    await leave()
    await heading('Plant 7 is not saved.').waitFor()
    await expect.poll(focused).toBe('Go on editing')
    await press('Go on editing')
    await expect.poll(hash).toBe('#plants/7')
    expect(await member('name').inputValue()).toBe('typed')

    await leave()
    await press('Discard what I typed')
    await expect.poll(hash).not.toBe('#plants/7')
    await expect.poll(() => form.getByText('Plant 7').count()).toBe(0)
  })
}

test('reload asks when something was typed', async () => {
  await openRow()
  await member('name').fill('typed')
  const asked: string[] = []
  page.on('dialog', dialog => {
    asked.push(dialog.type())
    dialog.dismiss()
  })

  await page.evaluate('setTimeout(() => location.reload())')
  await expect.poll(() => asked).toEqual(['beforeunload'])

  expect(await member('name').inputValue()).toBe('typed')
})

test('the link to a taken id opens beside what was typed', async () => {
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

test('a text costs its length once, and is shown from its beginning', {
  plants: [[7n, 'Ficus', 'a line\n'.repeat(200)]],
  place: '#plants/7',
  prepare: noteDirections,
}, async () => {
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

test('the focus of a question is on the harmless button', async () => {
  await openRow()
  await press('Delete')
  await expect.poll(focused).toBe('Keep it')
  await page.keyboard.press('Enter')
  await member('name').fill('mine')
  await replace(7n, 'theirs')
  await press('Save')
  await expect.poll(focused).toBe('Go on editing')
})

test('a held key answers nothing', async () => {
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
}, async () => {
  await link('10').focus()
  await holdKey('Tab')
  expect(await focused()).toBe('15')
  await filter('tag').focus()
  await holdKey('x')
  expect(await filter('tag').inputValue()).toBe('xxxxx')
})

test('a form takes no text while it saves, and keeps what comes', async () => {
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
  await press('Close')
  await press('Discard what I typed')
  await expect.poll(cells).toEqual(['mine', 'tree'])
})

test('a record says that it loads, also on a translated page', async () => {
  const release = await hold('GET')
  await openRow()
  await shows(status, 'Loading plant 7 …')
  const happened = page.locator('#happened')
  await happened.evaluate(message => message.replaceChildren('Lade …'))
  release()
  await heading('Plant 7').waitFor()
  await expect.poll(() => happened.textContent()).toBe('')
})

test('a message stays when an older one is taken back', { plants }, async () => {
  const releaseSave = await hold('PUT')
  const released = Promise.withResolvers()
  await page.route('**/plants/9', route => released.promise.then(() => route.continue()))
  await saveAndOpen()
  releaseSave()
  await shows(status, 'Plant 5 is saved.')

  released.resolve(0)

  await heading('Plant 9').waitFor()
  await shows(status, 'Plant 5 is saved.')
})

test('a form that does not come is said, and a late one opens once', async () => {
  await page.route('**/forms.js', route => route.abort())
  await reload()
  await openRow()
  await shows(row('7').getByRole('alert'), 'Not opened: the form did not come. Reload')
  expect(await refusal.textContent()).toBe('')

  const released = Promise.withResolvers()
  await page.route('**/forms.js', route => released.promise.then(() => route.continue()))
  await reload()
  await openRow()
  await shows(status, 'Loading plant 7 …')
  await goTo('#plants/new')
  released.resolve(0)

  await heading('New plant').waitFor()
  expect(await dialog.count()).toBe(1)
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
