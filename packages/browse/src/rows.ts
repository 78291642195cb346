import type { Plant } from '@plant-store/client'
import { copyText } from './clipboard.ts'
import { button, byId, element } from './dom.ts'
import { describeFilters } from './filters.ts'
import { type Place, toFragment, withParameter } from './place.ts'
import type { Members } from './plants.ts'
import { createCode } from './session.ts'
import { toCell } from './values.ts'

const table = byId('table', HTMLTableElement)
const emptyMessage = byId('empty')
const filters = byId('filters')
const newButton = byId('new')

/** The columns in their order. The name comes first, because people look for it. */
const columns: Members<(plant: Plant, place: Place) => HTMLElement> = {
  name({ id, name }, place) {
    const href = toFragment({ ...place, plant: `${id}` })
    return element('th', { scope: 'row' }, element('a', { href }, toCell(name)))
  },
  tag({ tag }, place) {
    const href = toFragment(withParameter(withParameter(place, 'after'), 'tag', tag))
    const link = element('a', { href, title: 'Show this tag' }, toCell(tag))
    return element('td', {}, tag === undefined ? toCell(tag) : link)
  },
  id: ({ id }) => element('td', { className: 'integer' }, `${id}`),
}

/** Empties the table, and what stands in its place. */
export function clearTable(): void {
  table.replaceChildren()
  table.hidden = false
  if (emptyMessage.contains(newButton)) {
    filters.append(newButton)
  }
  emptyMessage.replaceChildren()
  // An empty store has nothing to filter, and no other page.
  document.body.classList.remove('empty-store')
}

/** Shows a table without rows, and returns its body, to which rows can be appended. */
export function showTable(): HTMLElement {
  const body = element('tbody')
  const heads = Object.keys(columns).map(name =>
    element('th', { scope: 'col', className: name === 'id' ? 'integer' : '' }, name),
  )
  clearTable()
  const head = element('thead', {}, element('tr', {}, ...heads))
  table.append(element('caption', {}, 'plants'), head, body)
  return body
}

/** Says why there are no rows, in place of the table. */
export function showEmpty(place: Place): void {
  table.hidden = true
  if (place.parameters.size > 0) {
    emptyMessage.append(
      element('p', {}, 'No plant matches.'),
      element('p', { className: 'hint' }, 'Looked for ', describeFilters(place)),
      element('p', {}, element('a', { href: '#plants' }, 'All plants')),
    )
    return
  }
  document.body.classList.add('empty-store')
  const command = 'npx --yes pnpm@12 plant-store import FILE'
  const copy = button('Copy', () => copyText(command))
  emptyMessage.append(
    element('p', {}, 'No plants yet.'),
    // The same button, because a second one could come under a click on the first.
    element('p', {}, newButton),
    element('p', {}, 'Or load many from a file, on a terminal in the clone:'),
    element('p', { className: 'bar' }, createCode(command, 'command'), copy),
    element('p', { className: 'hint' }, 'Installed, it begins with plant-store.'),
  )
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

/** Returns the id of the row on one side of this one, if there is one. */
export function idBeside(id: bigint, side: 'Next' | 'Previous'): bigint | undefined {
  const row = findRow(id)
  const beside = side === 'Next' ? row?.nextElementSibling : row?.previousElementSibling
  return beside instanceof HTMLElement ? BigInt(`${beside.dataset['id']}`) : undefined
}

/** Returns the id of the row after this one, or else of the row before it. */
export function neighbourOf(id: bigint): bigint | undefined {
  return idBeside(id, 'Next') ?? idBeside(id, 'Previous')
}

/** Says beside a row why it cannot be opened. Returns whether there is such a row. */
export function failRow(id: bigint | undefined, text: string): boolean {
  const row = findRow(id)
  row?.querySelector('.problem')?.remove()
  const problem = element('p', { className: 'problem', role: 'alert' }, text)
  row?.firstElementChild?.append(problem)
  return row !== undefined
}

/**
 * Gives the focus to a row, or to "New" if there is no such row. Somebody who types in a
 * filter keeps the focus.
 */
export function focusRow(id: bigint | undefined): void {
  if (!(document.activeElement instanceof HTMLInputElement)) {
    const target = findRow(id)?.querySelector('a') ?? newButton
    target.focus()
  }
}

/** Gives the focus to the rows if the button that had it can no longer be used. */
export function keepFocus(): void {
  const focused = document.activeElement
  if (focused instanceof HTMLButtonElement && (focused.disabled || focused.hidden)) {
    table.querySelector('a')?.focus({ preventScroll: true })
  }
}

// A click anywhere in a row opens its plant, unless a text is being selected.
table.addEventListener('click', event => {
  const target = event.target as Element
  if (!target.closest('a') && getSelection()?.isCollapsed !== false) {
    target.closest('tr')?.querySelector('a')?.click()
  }
})
