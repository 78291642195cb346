import type { PlantListQuery } from '@plant-store/client'
import { byId } from './dom.ts'
import { clearMessages, refuse } from './messages.ts'
import { type Place, pagesBefore, toFragment, withParameter } from './place.ts'
import { plants } from './plants.ts'
import {
  clearTable,
  createRow,
  keepFocus,
  showBusy,
  showEmpty,
  showTable,
} from './rows.ts'
import { messageOf, signedIn, token } from './session.ts'

/** The largest number of rows on a page of the list. */
const rowsMax = 100

const rowsLine = byId('rows', HTMLElement)
const total = byId('total', HTMLElement)
const range = byId('range', HTMLElement)
const stop = byId('stop', HTMLButtonElement)
const first = byId('first', HTMLButtonElement)
const previous = byId('previous', HTMLButtonElement)
const next = byId('next', HTMLButtonElement)

/** How far a list has been read. */
interface Progress {
  rowCount: number
  hasMore: boolean
  /** The id after which the next page begins, `''` for the first page. */
  after: string
  /** The number of plants in all pages, in words. */
  total: string
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
  #place: Place | undefined
  /** Ends the reading that is under way. */
  #reading = new AbortController()

  constructor(onGo: OnGo) {
    this.#onGo = onGo
  }

  isAt(place: Place): boolean {
    return this.#place !== undefined && toFragment(this.#place) === toFragment(place)
  }

  /** Reads a list and shows it. If that fails, the table is empty. */
  async show(place: Place): Promise<void> {
    this.#place = place
    await this.#read(place, () => this.clear())
  }

  /** Reads the list again. If that fails, the rows stay as they are. */
  async refresh(): Promise<void> {
    if (this.#place !== undefined) {
      await this.#read(this.#place, () => {})
    }
  }

  /** Empties the table, so that nothing stays of what the token could see. */
  clear(): void {
    this.#reading.abort()
    this.#place = undefined
    clearTable()
    showBusy(false)
    this.#showStatus('')
    first.disabled = true
    previous.disabled = true
    next.disabled = true
  }

  /** Shows a list. If its reading was ended, what has ended it decides what is shown. */
  async #read(place: Place, onFailure: () => void): Promise<void> {
    this.#reading.abort()
    const reading = new AbortController()
    this.#reading = reading
    showBusy(true)
    try {
      const progress = await this.#readPages(place, reading.signal)
      this.#showEnd(place, progress)
    } catch (error) {
      if (!reading.signal.aborted) {
        this.#showStatus('')
        this.#refuse(place, error)
        onFailure()
      }
    }
  }

  /**
   * Shows the rows of a page. A search reads further pages of the store, until there are
   * `rowsMax` rows, no page follows, or the user stops it.
   */
  async #readPages(place: Place, signal: AbortSignal): Promise<Progress> {
    const { after = '', ...filters } = Object.fromEntries(place.parameters)
    const progress: Progress = { rowCount: 0, hasMore: true, after, total: '' }
    // Only the pages of a search can be empty and yet have a next one.
    const isSearch = filters['name_contains'] !== undefined
    const stopping = new AbortController()
    stop.onclick = () => stopping.abort()
    stop.hidden = !isSearch
    this.#showStatus(isSearch ? 'Searching …' : 'Loading …')
    // The store does not count the finds of a search.
    const query = isSearch ? filters : { ...filters, count: true }
    const signalOrStop = { signal: AbortSignal.any([signal, stopping.signal]) }
    let body: HTMLElement | undefined
    try {
      do {
        const page = await signedIn(() =>
          plants.list(toParameters(query, progress), signalOrStop),
        )
        // The rows of the previous list stay until the first page arrives.
        body ??= showTable()
        body.append(...page.items.map(plant => createRow(plant, place)))
        progress.rowCount += page.items.length
        progress.hasMore = page.next !== undefined
        progress.after = `${page.next ?? ''}`
        progress.total = `${page.total ?? ''}`
        total.textContent = isSearch ? toSearchProgress(progress) : ''
      } while (isSearch && progress.hasMore && progress.rowCount < rowsMax)
    } catch (error) {
      const isStoppedByUser = stopping.signal.aborted && !signal.aborted
      if (!isStoppedByUser) {
        throw error
      }
      body ??= showTable()
    }
    return progress
  }

  #showStatus(text: string): void {
    rowsLine.textContent = text
    total.textContent = ''
    range.textContent = ''
  }

  #refuse(place: Place, error: unknown): void {
    showBusy(false)
    stop.hidden = true
    const words = messageOf(error)
    if (token() === '') {
      // The user has closed the question for a token. "Try again" would only ask it
      // again.
      refuse(words)
      return
    }
    refuse(`The list cannot be read: ${words}.`, () => {
      clearMessages()
      this.show(place)
    })
  }

  #showEnd(place: Place, progress: Progress): void {
    const { rowCount, hasMore, after } = progress
    const noun = rowCount === 1 ? 'row' : 'rows'
    rowsLine.textContent = `${rowCount} ${noun}, ${hasMore ? 'more follow' : 'no more'}`
    total.textContent = toTotal(progress.total)
    showBusy(false)
    stop.hidden = true
    if (rowCount === 0 && !hasMore) {
      showEmpty(place)
    }
    // The ids after which pages begin, and `''` for the first page.
    const startOfThis = place.parameters.get('after') ?? ''
    const startsBefore = pagesBefore()
    const isKnown = startOfThis === '' || startsBefore[0] === ''
    const rowsBefore = startOfThis === '' ? 0 : startsBefore.length * rowsMax
    range.textContent = isKnown ? toRange(rowsBefore, progress) : ''
    const offer = (
      control: HTMLButtonElement,
      start: string | undefined,
      starts: readonly string[],
    ) => {
      control.disabled = start === undefined
      const page = withParameter(place, 'after', start || undefined)
      control.onclick = () => this.#onGo(page, starts)
    }
    offer(first, startOfThis === '' ? undefined : '', [])
    offer(previous, startsBefore.at(-1), startsBefore.slice(0, -1))
    offer(next, hasMore ? after : undefined, [...startsBefore, startOfThis])
    keepFocus()
  }
}

/** The URL may hold any text here. The store then says what is wrong with it. */
function toParameters(query: object, { after, rowCount }: Progress): PlantListQuery {
  const page = { limit: rowsMax - rowCount, ...(after !== '' && { after }) }
  return { ...query, ...page } as unknown as PlantListQuery
}

function toSearchProgress({ after, rowCount }: Progress): string {
  const found = `${rowCount} found`
  return after === '' ? found : `Looked up to id ${after}, ${found}`
}

/** A total such as "10000+" is a text, because the store stops counting there. */
function toTotal(total: string): string {
  if (total === '') {
    return ''
  }
  const end = total.endsWith('+') ? 'or more in all' : 'in all'
  return `${toCount(total)} ${end}`
}

/** Returns where the rows of a page are in the list, such as `101–200 of 10,000+`. */
function toRange(rowsBefore: number, { total, rowCount }: Progress): string {
  if (total === '' || rowCount === 0) {
    return ''
  }
  const first = toCount(rowsBefore + 1)
  const last = toCount(rowsBefore + rowCount)
  return `${first}–${last} of ${toCount(total)}${total.endsWith('+') ? '+' : ''}`
}

function toCount(count: string | number): string {
  return Number.parseInt(`${count}`, 10).toLocaleString('en')
}
