import type { Entity, Member } from './description.ts'
import { byId, element } from './dom.ts'
import { clearMessages, refuse } from './messages.ts'
import { type Place, pagesBefore, toFragment } from './place.ts'
import type { Item, Query, Records } from './records.ts'
import { createCommand, createCommands, signedIn, token, toWords } from './session.ts'
import { toCell } from './values.ts'

const rowsMax = 100

const table = byId('table', HTMLTableElement)
const empty = byId('empty', HTMLElement)
const status = byId('rows', HTMLElement)
const total = byId('total', HTMLElement)
const stop = byId('stop', HTMLButtonElement)
const first = byId('first', HTMLButtonElement)
const previous = byId('previous', HTMLButtonElement)
const next = byId('next', HTMLButtonElement)
const create = byId('new', HTMLButtonElement)

/** A list, and where it is read. */
export interface ListPlace {
  readonly entity: Entity
  readonly records: Records
  readonly place: Place
}

/** What has been read of a list. */
interface Progress {
  rowCount: number
  hasMore: boolean
  /** Where the next page begins. */
  after: string | undefined
}

/** The rows in the table. It shows one list at a time, and reads it at most once at a time. */
export class List {
  readonly #onGo: (place: Place, pagesBefore: readonly string[]) => void
  #shown: ListPlace | undefined
  /** Ends the reading that is under way. */
  #reading = new AbortController()

  /** @param onGo goes to another page of the list */
  constructor(onGo: (place: Place, pagesBefore: readonly string[]) => void) {
    this.#onGo = onGo
    table.addEventListener('click', openRowOf)
  }

  isAt(place: Place): boolean {
    return (
      this.#shown !== undefined && toFragment(this.#shown.place) === toFragment(place)
    )
  }

  /** Reads a list and shows it, or says why not. */
  async show(listPlace: ListPlace): Promise<void> {
    this.#shown = listPlace
    if (!(await this.#read())) {
      this.#shown = undefined
      clearTable()
    }
  }

  /** Reads the list again. If that fails, the rows of before stay. */
  async refresh(): Promise<void> {
    if (this.#shown !== undefined) {
      await this.#read()
    }
  }

  /** Leaves nothing of what a token could see. */
  clear(): void {
    this.#reading.abort()
    this.#shown = undefined
    clearTable()
    status.textContent = ''
  }

  /** Gives the focus to a row, or to "New" if there is no such row. */
  focusRow(id: bigint | undefined): void {
    const link = id === undefined ? undefined : findRow(id)?.querySelector('a')
    const target = link ?? create
    target.focus()
  }

  /** Returns the id of the row after this one. After the last row, that of the row before. */
  neighbourOf(id: bigint): bigint | undefined {
    const row = findRow(id)
    const neighbour = row?.nextElementSibling ?? row?.previousElementSibling
    const text = neighbour instanceof HTMLElement ? neighbour.dataset['id'] : undefined
    return text === undefined ? undefined : BigInt(text)
  }

  /** Removes a row. Returns whether there was one. */
  removeRow(id: bigint): boolean {
    const row = findRow(id)
    row?.remove()
    return row !== undefined
  }

  /** Says beside a row why it cannot be opened. Returns whether there is such a row. */
  failRow(id: bigint, text: string): boolean {
    const row = findRow(id)
    row?.querySelector('.problem')?.remove()
    const problem = element('p', { className: 'problem', role: 'alert' }, text)
    row?.lastElementChild?.append(problem)
    return row !== undefined
  }

  /** Resolves to whether the list could be read. If another reading has begun meanwhile, that one says what it is. */
  async #read(): Promise<boolean> {
    this.#reading.abort()
    const reading = new AbortController()
    this.#reading = reading
    table.setAttribute('aria-busy', 'true')
    status.textContent = 'Loading …'
    total.textContent = ''
    let isRead = true
    try {
      await this.#readPages(reading.signal)
    } catch (error) {
      if (reading.signal.aborted) {
        return true
      }
      isRead = false
      status.textContent = ''
      this.#refuse(error)
    }
    if (!reading.signal.aborted) {
      table.removeAttribute('aria-busy')
      stop.hidden = true
      keepFocus()
    }
    return isRead
  }

  #refuse(error: unknown): void {
    const words = toWords(error)
    const listPlace = this.#shown
    if (token() === '' || listPlace === undefined) {
      refuse(words)
      return
    }
    refuse(`The list cannot be read: ${words}.`, () => {
      clearMessages()
      this.show(listPlace)
    })
  }

  /** A search goes on from page to page, until there are enough rows or it is stopped. */
  async #readPages(signal: AbortSignal): Promise<void> {
    if (this.#shown === undefined) {
      return
    }
    const { entity, records, place } = this.#shown
    const { after: start, ...filters } = Object.fromEntries(place.parameters)
    // Only such a filter lets the store answer with an empty page that has a next one.
    const isSearch = entity.filters.some(
      ({ name }) => name.endsWith('_contains') && filters[name] !== undefined,
    )
    const stopping = new AbortController()
    stop.onclick = () => stopping.abort()
    stop.hidden = !isSearch
    const options = { signal: AbortSignal.any([signal, stopping.signal]) }
    const count = entity.canCount && !isSearch ? { count: true } : {}
    const progress: Progress = { rowCount: 0, hasMore: true, after: start }
    let body: HTMLElement | undefined
    try {
      do {
        const limit = rowsMax - progress.rowCount
        const query = toQuery({ ...filters, ...count, limit }, progress.after)
        const page = await signedIn(() => records.list(query, options))
        body ??= showTable(entity)
        body.append(...page.items.map(item => createRow(item, entity.members, place)))
        progress.rowCount += page.items.length
        progress.hasMore = page.next !== undefined
        progress.after = page.next === undefined ? undefined : `${page.next}`
        total.textContent = toTotal(page.total)
        status.textContent = toSearchStatus(progress)
      } while (isSearch && progress.hasMore && progress.rowCount < rowsMax)
    } catch (error) {
      if (!stopping.signal.aborted || signal.aborted) {
        throw error
      }
      body ??= showTable(entity)
    }
    this.#showEnd(progress)
  }

  #showEnd({ rowCount, hasMore, after }: Progress): void {
    if (this.#shown === undefined) {
      return
    }
    const { entity, place } = this.#shown
    const noun = rowCount === 1 ? 'row' : 'rows'
    status.textContent = `${rowCount} ${noun}, ${hasMore ? 'more follow' : 'no more'}`
    const isEmpty = rowCount === 0 && !hasMore
    table.hidden = isEmpty
    empty.replaceChildren(...(isEmpty ? describeEmpty(entity, place) : []))

    const known = pagesBefore()
    const pageBefore = known.at(-1)
    const toPage = (after: string | undefined) => {
      const parameters = new Map(place.parameters)
      parameters.delete('after')
      return {
        ...place,
        parameters: after === undefined ? parameters : parameters.set('after', after),
      }
    }
    first.disabled = !place.parameters.has('after')
    first.onclick = () => this.#onGo(toPage(undefined), [])
    previous.disabled = pageBefore === undefined
    previous.onclick = () =>
      this.#onGo(toPage(pageBefore || undefined), known.slice(0, -1))
    next.disabled = !hasMore
    const here = place.parameters.get('after') ?? ''
    next.onclick = () => this.#onGo(toPage(after), [...known, here])
  }
}

function toQuery(query: Query, after: string | undefined): Query {
  // The store itself says what is wrong with a place that somebody has typed.
  return after === undefined ? query : { ...query, after: after as unknown as bigint }
}

function toSearchStatus({ after, rowCount }: Progress): string {
  return `Searching … Looked up to id ${after}, ${rowCount} found`
}

function toTotal(total: number | string | undefined): string {
  if (total === undefined) {
    return ''
  }
  const count = Number.parseInt(`${total}`, 10).toLocaleString('en')
  return typeof total === 'number' ? `${count} in all` : `${count} or more in all`
}

/** Shows a table without rows, and returns the place for them. */
function showTable({ name, members }: Entity): HTMLElement {
  const body = element('tbody')
  const heads = members.map(({ name, description, bounds }) => {
    const className = bounds ? 'integer' : ''
    return element('th', { scope: 'col', title: description, className }, name)
  })
  const head = element('thead', {}, element('tr', {}, ...heads))
  table.replaceChildren(element('caption', {}, name), head, body)
  table.hidden = false
  empty.replaceChildren()
  return body
}

function createRow(item: Item, members: readonly Member[], place: Place): HTMLElement {
  const id = `${item.id}`
  const cells = members.map(({ name, bounds }) => {
    const className = bounds ? 'integer' : ''
    const cell =
      name === 'id'
        ? element('th', { scope: 'row', className }, createLink(id, place))
        : element('td', { className }, toCell(item[name]))
    cell.dataset['name'] = name
    return cell
  })
  const row = element('tr', {}, ...cells)
  row.dataset['id'] = id
  return row
}

function createLink(id: string, place: Place): HTMLElement {
  return element('a', { href: toFragment({ ...place, record: id }) }, id)
}

function findRow(id: bigint): HTMLTableRowElement | undefined {
  return [...table.rows].find(row => row.dataset['id'] === `${id}`)
}

/** Opens the record of a row that is clicked anywhere, unless a text in it is being selected. */
function openRowOf({ target }: Event): void {
  const isSelecting = getSelection()?.isCollapsed === false
  if (!(target instanceof Element) || target.closest('a') || isSelecting) {
    return
  }
  target.closest('tr')?.querySelector('a')?.click()
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

function clearTable(): void {
  table.replaceChildren()
  table.removeAttribute('aria-busy')
  empty.replaceChildren()
  total.textContent = ''
  stop.hidden = true
  for (const control of [first, previous, next]) {
    control.disabled = true
  }
}

/** Gives the focus to the table if the button that had it can no longer be used. */
function keepFocus(): void {
  const focused = document.activeElement
  const isLost =
    focused instanceof HTMLButtonElement && (focused.disabled || focused.hidden)
  if (isLost) {
    table.querySelector('a')?.focus({ preventScroll: true })
  }
}
