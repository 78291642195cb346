import type { Plant } from '@plant-store/client'
import { copyText } from './clipboard.ts'
import { button, byId, element } from './dom.ts'
import { describeFilters } from './filters.ts'
import { type Place, toFragment, withParameter } from './place.ts'
import type { Members } from './plants.ts'
import { createCode } from './session.ts'
import { toCell } from './values.ts'

const table = byId('table', HTMLTableElement)
const emptyMessage = byId('empty', HTMLElement)
const newButton = byId('new', HTMLElement)

/** The columns in their order. The name comes first, because people look for it. */
const columns: Members<(plant: Plant, place: Place) => HTMLElement> = {
  name({ id, name }, place) {
    const href = toFragment({ ...place, plant: `${id}` })
    return element('th', { scope: 'row' }, element('a', { href }, toCell(name)))
  },
  tag({ tag }, place) {
    const sameTag = withParameter(withParameter(place, 'after'), 'tag', tag)
    const href = toFragment(sameTag)
    const link = element('a', { href, title: 'Show this tag' }, toCell(tag))
    return element('td', {}, tag === undefined ? toCell(tag) : link)
  },
  id: ({ id }) => element('td', { className: 'integer' }, `${id}`),
}

/** Shows a table without rows, and returns its body, to which rows can be appended. */
export function showTable(): HTMLElement {
  const body = element('tbody')
  const heads = Object.keys(columns).map(name => {
    const className = name === 'id' ? 'integer' : ''
    return element('th', { scope: 'col', className }, name)
  })
  const head = element('thead', {}, element('tr', {}, ...heads))
  table.replaceChildren(element('caption', {}, 'plants'), head, body)
  table.hidden = false
  showEmptyStore(false)
  emptyMessage.replaceChildren()
  return body
}

/** Says why there are no rows, in place of the table. */
export function showEmpty(place: Place): void {
  table.hidden = true
  showEmptyStore(place.parameters.size === 0)
  if (place.parameters.size > 0) {
    emptyMessage.replaceChildren(
      element('p', {}, 'No plant matches.'),
      element('p', { className: 'hint' }, 'Looked for ', ...describeFilters(place)),
      element('p', {}, element('a', { href: '#plants' }, 'All plants')),
    )
    return
  }
  const command = 'npx --yes pnpm@12 plant-store import FILE'
  const code = createCode(command)
  code.className = 'command'
  const create = button('New', () => newButton.click(), 'primary change')
  const copy = button('Copy', () => copyText(command))
  emptyMessage.replaceChildren(
    element('p', {}, 'No plants yet.'),
    element('p', {}, create),
    element('p', {}, 'Or load many from a file, on a terminal in the clone:'),
    element('p', { className: 'bar' }, code, copy),
    element('p', { className: 'hint' }, 'Installed, it begins with plant-store.'),
  )
}

/** An empty store has nothing to filter, and no other page. */
function showEmptyStore(isEmpty: boolean): void {
  document.body.classList.toggle('empty-store', isEmpty)
}

export function clearTable(): void {
  table.replaceChildren()
  showEmptyStore(false)
  emptyMessage.replaceChildren()
}

export function showBusy(isBusy: boolean): void {
  table.ariaBusy = `${isBusy}`
}

export function createRow(plant: Plant, place: Place): HTMLElement {
  const cells = Object.entries(columns).map(([name, createCell]) => {
    const cell = createCell(plant, place)
    cell.dataset['name'] = name
    return cell
  })
  const row = element('tr', {}, ...cells)
  row.dataset['id'] = `${plant.id}`
  return row
}

/** Returns the row of a plant, or `undefined` if there is none, as for no id. */
export function findRow(id: bigint | undefined): HTMLTableRowElement | undefined {
  return [...table.rows].find(row => row.dataset['id'] === `${id}`)
}

/** Returns the link of the first row. */
export function findFirstLink(): HTMLElement | null {
  return table.querySelector('a')
}

/** Returns the button "New" that is shown. */
export function findNew(): HTMLElement {
  return emptyMessage.querySelector('button') ?? newButton
}

// A click anywhere in a row opens its plant, unless a text is being selected.
table.addEventListener('click', ({ target }) => {
  const isSelecting = getSelection()?.isCollapsed === false
  if (!(target instanceof Element) || target.closest('a') || isSelecting) {
    return
  }
  target.closest('tr')?.querySelector('a')?.click()
})
