import type { Entity, Member } from './description.ts'
import { byId, element } from './dom.ts'
import { type Place, toFragment } from './place.ts'
import type { Item } from './records.ts'
import { createCommand, createCommands } from './session.ts'
import { classOf, toCell } from './values.ts'

const table = byId('table', HTMLTableElement)
const emptyMessage = byId('empty', HTMLElement)

/** Shows a table without rows, and returns its body, to which rows can be appended. */
export function showTable({ name, members }: Entity): HTMLElement {
  const body = element('tbody')
  const heads = members.map(({ name, description, bounds }) => {
    const className = classOf(bounds)
    return element('th', { scope: 'col', title: description, className }, name)
  })
  const head = element('thead', {}, element('tr', {}, ...heads))
  table.replaceChildren(element('caption', {}, name), head, body)
  table.hidden = false
  emptyMessage.replaceChildren()
  return body
}

/** Says why there are no rows, in place of the table. */
export function showEmpty(entity: Entity, place: Place): void {
  table.hidden = true
  emptyMessage.replaceChildren(...describeEmpty(entity, place))
}

function describeEmpty(entity: Entity, place: Place): readonly HTMLElement[] {
  if (place.parameters.size > 0) {
    return [element('p', {}, `No ${entity.kind} matches.`)]
  }
  const words = element('p', {}, `No ${entity.name} yet.`)
  if (!entity.hasBatch) {
    return [words]
  }
  return [
    words,
    element('p', {}, 'Press New to add one, or load many from a file:'),
    ...createCommands('plant-store import FILE'),
    createCommand('From a program', `POST ${entity.path}/batch`),
  ]
}

export function clearTable(): void {
  table.replaceChildren()
  emptyMessage.replaceChildren()
}

export function showBusy(isBusy: boolean): void {
  table.ariaBusy = `${isBusy}`
}

export function createRow(
  item: Item,
  members: readonly Member[],
  place: Place,
): HTMLElement {
  const cells = members.map(member => {
    const isId = member.name === 'id'
    const cell = isId ? createRowHead(item, place) : createCell(item, member)
    cell.dataset['name'] = member.name
    return cell
  })
  const row = element('tr', {}, ...cells)
  row.dataset['id'] = `${item.id}`
  return row
}

function createRowHead(item: Item, place: Place): HTMLElement {
  const id = `${item.id}`
  const href = toFragment({ ...place, record: id })
  const link = element('a', { href }, id)
  return element('th', { scope: 'row', className: 'integer' }, link)
}

function createCell(item: Item, { name, bounds }: Member): HTMLElement {
  const className = classOf(bounds)
  return element('td', { className }, toCell(item[name]))
}

/** Returns the row of a record, or `undefined` if there is none, as for no id. */
export function findRow(id: bigint | undefined): HTMLTableRowElement | undefined {
  return [...table.rows].find(row => row.dataset['id'] === `${id}`)
}

/** Returns the link of the first row. */
export function findFirstLink(): HTMLElement | null {
  return table.querySelector('a')
}

// A click anywhere in a row opens its record, unless a text is being selected.
table.addEventListener('click', ({ target }) => {
  const isSelecting = getSelection()?.isCollapsed === false
  if (!(target instanceof Element) || target.closest('a') || isSelecting) {
    return
  }
  target.closest('tr')?.querySelector('a')?.click()
})
