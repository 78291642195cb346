import type { Entity } from './description.ts'
import { byId, element } from './dom.ts'
import { clearMessages, refuse } from './messages.ts'
import { type Place, pagesBefore, toFragment } from './place.ts'
import type { Query, Records } from './records.ts'
import {
  clearTable,
  createRow,
  findFirstLink,
  findRow,
  showBusy,
  showEmpty,
  showTable,
} from './rows.ts'
import { signedIn, token, toWords } from './session.ts'

/** The largest number of rows on a page of the list. */
const rowsMax = 100

const rowsLine = byId('rows', HTMLElement)
const total = byId('total', HTMLElement)
const stop = byId('stop', HTMLButtonElement)
const first = byId('first', HTMLButtonElement)
const previous = byId('previous', HTMLButtonElement)
const next = byId('next', HTMLButtonElement)
const create = byId('new', HTMLButtonElement)

/** A place, and where its list is read. */
export interface View {
  readonly entity: Entity
  readonly records: Records
  readonly place: Place
}

/** How far a list has been read. */
interface Progress {
  rowCount: number
  hasMore: boolean
  /** The id after which the next page begins, `''` for the first page. */
  after: string
}

/** Called when the user goes to another page of a list. */
export type OnGo = (place: Place, pagesBefore: readonly string[]) => void

/**
 * The list in the table. It is read once at a time: another reading ends the one that is
 * under way, which then says nothing.
 */
export class List {
  readonly #onGo: OnGo
  /** The list that is in the table, or is being read. */
  #view: View | undefined
  /** Ends the reading that is under way. */
  #reading = new AbortController()

  constructor(onGo: OnGo) {
    this.#onGo = onGo
  }

  isAt(place: Place): boolean {
    const shown = this.#view?.place
    return shown !== undefined && toFragment(shown) === toFragment(place)
  }

  /** Reads a list and shows it. If that fails, the table is empty. */
  async show(view: View): Promise<void> {
    this.#view = view
    const isRead = await this.#read(view)
    if (!isRead) {
      this.clear()
    }
  }

  /** Reads the list again. If that fails, the rows stay as they are. */
  async refresh(): Promise<void> {
    if (this.#view !== undefined) {
      await this.#read(this.#view)
    }
  }

  /** Empties the table, so that nothing stays of what the token could see. */
  clear(): void {
    this.#reading.abort()
    this.#view = undefined
    clearTable()
    showBusy(false)
    this.#showStatus('')
    for (const control of [first, previous, next]) {
      control.disabled = true
    }
  }

  /** Gives the focus to a row, or to "New" if there is no such row. */
  focusRow(id: bigint | undefined): void {
    const link = findRow(id)?.querySelector('a')
    const target = link ?? create
    target.focus()
  }

  /** Returns the id of the row after this one, or else of the row before it. */
  neighbourOf(id: bigint): bigint | undefined {
    const row = findRow(id)
    const neighbour = row?.nextElementSibling ?? row?.previousElementSibling
    if (neighbour instanceof HTMLTableRowElement) {
      return BigInt(neighbour.dataset['id'] ?? '')
    }
    return undefined
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

  /**
   * Resolves to false if the list cannot be read. A reading that was ended resolves to
   * true, because what has ended it decides what the table shows.
   */
  async #read(view: View): Promise<boolean> {
    this.#reading.abort()
    const reading = new AbortController()
    this.#reading = reading
    showBusy(true)
    this.#showStatus('Loading …')
    try {
      const progress = await this.#readPages(view, reading.signal)
      this.#showEnd(view, progress)
      return true
    } catch (error) {
      if (reading.signal.aborted) {
        return true
      }
      this.#showStatus('')
      this.#refuse(view, error)
      return false
    }
  }

  /**
   * Shows the rows of a page. A search reads further pages of the store, until there are
   * `rowsMax` rows, no page follows, or the user stops it.
   */
  async #readPages(view: View, signal: AbortSignal): Promise<Progress> {
    const { entity, place } = view
    const parameters = Object.fromEntries(place.parameters)
    const { after = '', ...filters } = parameters
    const progress: Progress = { rowCount: 0, hasMore: true, after }
    const isSearch = entity.filters.some(({ name }) => isSearchFor(name, filters))
    const stopping = new AbortController()
    stop.onclick = () => stopping.abort()
    stop.hidden = !isSearch
    const signalOrStop = AbortSignal.any([signal, stopping.signal])
    const query = toQuery(entity, filters, isSearch)
    let body: HTMLElement | undefined
    try {
      do {
        const page = await this.#readPage(view, { query, progress, signal: signalOrStop })
        // The rows of the previous list stay until the first page arrives.
        body ??= showTable(entity)
        const rows = page.items.map(item => createRow(item, entity.members, place))
        body.append(...rows)
        progress.rowCount += page.items.length
        progress.hasMore = page.next !== undefined
        progress.after = `${page.next ?? ''}`
        if (isSearch) {
          this.#showStatus(toSearchStatus(progress))
        }
        total.textContent = toTotal(page.total)
      } while (isSearch && progress.hasMore && progress.rowCount < rowsMax)
    } catch (error) {
      const isStoppedByUser = stopping.signal.aborted && !signal.aborted
      if (!isStoppedByUser) {
        throw error
      }
      if (body === undefined) {
        showTable(entity)
      }
    }
    return progress
  }

  #readPage({ records }: View, options: PageOptions) {
    const { progress, signal } = options
    const query: Query = { ...options.query, limit: rowsMax - progress.rowCount }
    if (progress.after === '') {
      return signedIn(() => records.list(query, { signal }))
    }
    // The URL may hold any text here. The store then says what is wrong with it.
    const after = progress.after as unknown as bigint
    return signedIn(() => records.list({ ...query, after }, { signal }))
  }

  #showStatus(text: string): void {
    rowsLine.textContent = text
    total.textContent = ''
  }

  #refuse(view: View, error: unknown): void {
    showBusy(false)
    stop.hidden = true
    const words = toWords(error)
    if (token() === '') {
      // The user has closed the question for a token. "Try again" would only ask it
      // again.
      refuse(words)
      return
    }
    refuse(`The list cannot be read: ${words}.`, () => {
      clearMessages()
      this.show(view)
    })
  }

  #showEnd(view: View, { rowCount, hasMore, after }: Progress): void {
    const { entity, place } = view
    const noun = rowCount === 1 ? 'row' : 'rows'
    const rest = hasMore ? 'more follow' : 'no more'
    rowsLine.textContent = `${rowCount} ${noun}, ${rest}`
    showBusy(false)
    stop.hidden = true
    if (rowCount === 0 && !hasMore) {
      showEmpty(entity, place)
    }
    // The ids after which pages begin, and `''` for the first page.
    const startOfThis = place.parameters.get('after') ?? ''
    const startsBefore = pagesBefore()
    const startOfPrevious = startsBefore.at(-1)
    const startsBeforePrevious = startsBefore.slice(0, -1)
    const startsBeforeNext = [...startsBefore, startOfThis]
    first.disabled = startOfThis === ''
    first.onclick = () => this.#onGo(toPage(place, ''), [])
    previous.disabled = startOfPrevious === undefined
    previous.onclick = () =>
      this.#onGo(toPage(place, startOfPrevious), startsBeforePrevious)
    next.disabled = !hasMore
    next.onclick = () => this.#onGo(toPage(place, after), startsBeforeNext)
    keepFocus()
  }
}

interface PageOptions {
  readonly query: Query
  readonly progress: Progress
  readonly signal: AbortSignal
}

/**
 * Returns whether a filter searches. Only the pages of a search can be empty and yet have
 * a next one.
 */
function isSearchFor(name: string, filters: Readonly<Record<string, string>>): boolean {
  return name.endsWith('_contains') && filters[name] !== undefined
}

/** Returns the query of a list. The store does not count the finds of a search. */
function toQuery(
  { canCount }: Entity,
  filters: Readonly<Record<string, string>>,
  isSearch: boolean,
): Query {
  if (canCount && !isSearch) {
    return { ...filters, count: true }
  }
  return filters
}

/** Returns the place of a page that begins after an id, or of the first page. */
function toPage(place: Place, after = ''): Place {
  const parameters = new Map(place.parameters)
  parameters.delete('after')
  if (after !== '') {
    parameters.set('after', after)
  }
  return { ...place, parameters }
}

function toSearchStatus({ after, rowCount }: Progress): string {
  return `Searching … Looked up to id ${after}, ${rowCount} found`
}

/** A total such as "10000+" is a text, because the store stops counting there. */
function toTotal(total: number | string | undefined): string {
  if (total === undefined) {
    return ''
  }
  const count = Number.parseInt(`${total}`, 10).toLocaleString('en')
  if (typeof total === 'number') {
    return `${count} in all`
  }
  return `${count} or more in all`
}

/** Gives the focus to the rows if the button that had it can no longer be used. */
function keepFocus(): void {
  const focused = document.activeElement
  if (!(focused instanceof HTMLButtonElement)) {
    return
  }
  if (focused.disabled || focused.hidden) {
    findFirstLink()?.focus({ preventScroll: true })
  }
}
