import type { PlantListQuery } from '@plant-store/client'
import { byId } from './dom.ts'
import { clearMessages, refuse } from './messages.ts'
import {
  type addVisit,
  type Place,
  pagesBefore,
  toFragment,
  withParameter,
} from './place.ts'
import { listPlants } from './plants.ts'
import {
  clearTable,
  createRow,
  keepFocus,
  showBusy,
  showEmpty,
  showTable,
} from './rows.ts'
import { messageOf, token } from './session.ts'

/** The largest number of rows on a page of the list. */
const rowsMax = 100

const rowsLine = byId('rows')
const totalLine = byId('total')
const range = byId('range')
const stop = byId('stop')
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

/**
 * The list in the table. It is read once at a time: another reading ends the one that is
 * under way, which then says nothing.
 */
export class List {
  /** The list that is in the table, or is being read. */
  #place: Place | undefined
  /** Ends the reading that is under way. */
  #reading = new AbortController()

  readonly #onGo: typeof addVisit

  /** @param onGo called when the user goes to another page of the list */
  constructor(onGo: typeof addVisit) {
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
    this.#showStatus('')
    for (const control of [first, previous, next]) {
      control.disabled = true
    }
  }

  /** Shows a list. If its reading was ended, what has ended it decides what is shown. */
  async #read(place: Place, onFailure: () => void) {
    this.#reading.abort()
    const reading = new AbortController()
    this.#reading = reading
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
    this.#showStatus(isSearch ? 'Searching …' : 'Loading …', true, isSearch)
    // The store does not count the finds of a search.
    const query = isSearch ? filters : { ...filters, count: true }
    const signalOrStop = { signal: AbortSignal.any([signal, stopping.signal]) }
    let body: HTMLElement | undefined
    try {
      do {
        const page = await listPlants(toParameters(query, progress), signalOrStop)
        // The rows of the previous list stay until the first page arrives.
        body ??= showTable()
        body.append(...page.items.map(plant => createRow(plant, place)))
        progress.rowCount += page.items.length
        progress.hasMore = page.next !== undefined
        progress.after = `${page.next ?? ''}`
        progress.total = `${page.total ?? ''}`
        totalLine.textContent = isSearch ? toSearchProgress(progress) : ''
      } while (isSearch && progress.hasMore && progress.rowCount < rowsMax)
    } catch (error) {
      // Only the user's "Stop" is no failure.
      if (signal.aborted || !stopping.signal.aborted) {
        throw error
      }
      body ??= showTable()
    }
    return progress
  }

  #showStatus(text: string, isBusy = false, canStop = false) {
    rowsLine.textContent = text
    totalLine.textContent = ''
    range.textContent = ''
    showBusy(isBusy)
    stop.hidden = !canStop
  }

  #refuse(place: Place, error: unknown) {
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

  #showEnd(place: Place, progress: Progress) {
    const { rowCount, hasMore, after } = progress
    const rows = rowCount === 1 ? '1 row' : `${rowCount} rows`
    this.#showStatus(`${rows}, ${hasMore ? 'more follow' : 'no more'}`)
    if (rowCount === 0 && !hasMore) {
      showEmpty(place)
    }
    // The ids after which pages begin, and `''` for the first page.
    const startOfThis = place.parameters.get('after') ?? ''
    const startsBefore = pagesBefore()
    const isKnown = startOfThis === '' || startsBefore[0] === ''
    const rowsBefore = startOfThis === '' ? 0 : startsBefore.length * rowsMax
    showTotal(progress, isKnown ? rowsBefore : undefined)
    const offer = (
      control: HTMLButtonElement,
      start: string | undefined,
      starts: readonly string[] = [],
    ) => {
      control.disabled = start === undefined
      const page = withParameter(place, 'after', start || undefined)
      control.onclick = () => this.#onGo(page, starts)
    }
    offer(first, startOfThis === '' ? undefined : '')
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

function toSearchProgress({ after, rowCount }: Progress) {
  return after === ''
    ? `${rowCount} found`
    : `Looked up to id ${after}, ${rowCount} found`
}

/**
 * Shows how many plants all pages have, and where the rows are among them, such as
 * `101–200 of 10,000+`. A total such as "10000+" is where the store stops counting.
 *
 * @param rowsBefore the number of rows on the pages before, if it is known
 */
function showTotal(progress: Progress, rowsBefore: number | undefined) {
  const { total, rowCount } = progress
  if (total === '') {
    return
  }
  const [more, plus] = total.endsWith('+') ? [' or more', '+'] : ['', '']
  const count = toCount(Number.parseInt(total, 10))
  totalLine.textContent = `${count}${more} in all`
  if (rowsBefore !== undefined && rowCount > 0) {
    const [first, last] = [rowsBefore + 1, rowsBefore + rowCount].map(toCount)
    range.textContent = `${first}–${last} of ${count}${plus}`
  }
}

function toCount(count: number) {
  return count.toLocaleString('en')
}
