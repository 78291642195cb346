import { hasBrowser } from '@plant-store/harness/browser'
import { needs } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { hold, shows, signIn, usePage } from './page.ts'

describe('what people lose elsewhere', needs('chromium', hasBrowser), () => {
  const { open, fill, stored, ...fixture } = usePage()

  test('what an extension writes while a change is sent is kept', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open()
    const { page, openRow, press, member, form } = opened
    const release = await hold(page, 'PUT', '7')
    await openRow('7')
    await member('name').fill('mine')
    await press('Save')
    await member('name').evaluate(field => Object.assign(field, { value: 'more' }))
    expect(await member('name').getAttribute('readonly')).toBe('')

    release()

    await shows(form.getByRole('alert'), 'Saved without what was typed meanwhile')
    expect(await member('name').inputValue()).toBe('more')
    expect((await stored(7n))?.name).toBe('mine')
  })

  test('a page kept in memory forgets what it showed after a sign-out', async () => {
    await fill([7n, 'SECRET'])
    await using opened = await open()
    const { page, rows } = opened
    await shows(rows, '1 row')
    await page.evaluate(() => {
      sessionStorage.clear()
      dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))
    })
    await page.getByLabel('Access token').waitFor()
    expect(await page.content()).not.toContain('SECRET')
  })

  test('a filter that its field cannot show is kept, seen and cleared', async () => {
    await fill([7n, 'Ficus', 'a\nb'], [8n, 'eight', ''])
    for (const [tag, sign] of [
      ['a%0Ab', 'a ↵ b'],
      ['', '(empty)'],
    ]) {
      await using opened = await open({ place: `#plants?tag=${tag}` })
      const { filter, press, rows, hash } = opened
      await shows(rows, '1 row')
      expect(await filter('tag').getAttribute('placeholder'), tag).toBe(sign)
      await press('Show')
      await shows(rows, '1 row')
      expect(hash(), tag).toBe(`#plants?tag=${tag}`)
      await press('Clear tag')
      await shows(rows, '2 rows')
    }
  })

  test('Copy gives what is stored, and spelling has no sign', async () => {
    const name = '🌶\ufe0f گل\u200cرز\nnext\u200b'
    await fill([7n, name])
    await using opened = await open()
    const { page, rows, cells } = opened
    await shows(rows, '1 row')
    expect(await cells()).toEqual(['🌶\ufe0f گل\u200cرز ↵ nextU+200B', '–'])
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const copied = await page.evaluate(() => {
      getSelection()?.selectAllChildren(
        document.querySelector('#table tbody th') ?? document.body,
      )
      document.execCommand('copy')
      return navigator.clipboard.readText()
    })
    expect(copied).toBe(name)
  })

  test('a line break at the end of a new text is not saved', async () => {
    await fill()
    await using opened = await open()
    const { press, member, status } = opened
    await press('New')
    await member('id').fill('7')
    await member('name').fill('Ficus\n')
    await press('Save')
    await shows(status, 'Plant 7 is saved.')
    expect(await stored(7n)).toEqual({ id: 7n, name: 'Ficus' })
  })

  test('the title names the plant or the filter', async () => {
    await fill([7n, 'Ficus', 'tree'])
    await using opened = await open({ place: '#plants?tag=tree' })
    const { page, openRow } = opened
    await expect.poll(() => page.title()).toBe('plants: tag tree – Plant Store')
    await openRow('7')
    await expect.poll(() => page.title()).toBe('Ficus (7) – Plant Store')
  })

  test('"/" goes to the search, and Ctrl+Enter saves', async () => {
    await fill([7n, 'Ficus'])
    await using opened = await open()
    const { page, rows, filter, openRow, member, status } = opened
    await shows(rows, '1 row')
    await page.keyboard.press('/')
    await page.keyboard.type('a/b')
    expect(await filter('name contains').inputValue()).toBe('a/b')
    await openRow('7')
    await member('name').fill('mine')
    await page.keyboard.press('Control+Enter')
    await shows(status, 'Plant 7 is saved.')
  })

  test('a click on a tag shows the plants that have it', async () => {
    await fill([7n, 'Ficus', 'tree'], [8n, 'eight'])
    await using opened = await open()
    const { follow, ids, hash } = opened
    await follow('tree')
    await expect.poll(ids).toEqual(['7'])
    expect(hash()).toBe('#plants?tag=tree')
  })

  test('a record copies its parts, and leads to those beside it', async () => {
    const id = 2n ** 53n + 1n
    await fill([id, 'Ficus', 'tree'], [id + 1n, 'last'])
    await using opened = await open()
    const { page, openRow, press, heading, form } = opened
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await openRow(`${id}`)
    const parts = {
      id: `${id}`,
      link: `${fixture.store().url}/browse#plants/${id}`,
      JSON: `{"id":${id},"name":"Ficus","tag":"tree"}`,
    }
    for (const [name, text] of Object.entries(parts)) {
      await press(`Copy ${name}`)
      expect(await page.evaluate(() => navigator.clipboard.readText()), name).toBe(text)
    }

    await press('Next plant')
    await heading(`Plant ${id + 1n}`).waitFor()
    await press('Next plant')
    await shows(form.getByRole('status'), 'No next plant')
    await press('Previous plant')
    await heading(`Plant ${id}`).waitFor()
  })

  test('a start that fails says why, and can be tried again', async () => {
    await fill([7n, 'Ficus'])
    await using opened = await open({ as: '' })
    const { page, refusal, press, rows } = opened
    const answer = { status: 502, body: '<h1>Bad Gateway</h1>' }
    await page.route('**/plants?*', route => route.fulfill(answer))
    await signIn(page, fixture.token())
    await shows(refusal, '502')
    await page.unroute('**/plants?*')
    await press('Try again')
    await shows(rows, '1 row')

    await page.route('**/page.js', route => route.abort())
    await opened.reload()
    await shows(page.locator('#starting'), 'try again')
  })

  test('a URL with a name and password works', async () => {
    await fill([7n, 'Ficus'])
    await using opened = await open()
    const { page, rows } = opened
    const { host } = new URL(page.url())
    await page.goto(`http://user:secret@${host}/browse`)
    await shows(rows, '1 row')
  })

  test('a message ends although the page was translated', async () => {
    await fill([7n, 'Ficus'])
    await using opened = await open()
    const { page, openRow, status, heading } = opened
    const release = await hold(page, 'GET', '7')
    await openRow('7')
    await shows(status, 'Loading plant 7 …')
    const happened = page.locator('#happened')
    await happened.evaluate(message => message.replaceChildren('Lade …'))
    release()
    await heading('Plant 7').waitFor()
    await expect.poll(() => happened.textContent()).toBe('')
  })

  test('a record is printed once and whole', async () => {
    await fill([7n, 'a line\n'.repeat(200)])
    await using opened = await open()
    const { page, openRow, member, button } = opened
    await openRow('7')
    await member('name').waitFor()
    await page.emulateMedia({ media: 'print' })
    const hiddenHeight = await member('name').evaluate(
      field => field.scrollHeight - field.clientHeight,
    )
    expect(hiddenHeight).toBe(0)
    expect(await page.locator('#table').isVisible(), 'the list').toBe(false)
    expect(await button('Save').isVisible(), 'a button').toBe(false)
  })
})
