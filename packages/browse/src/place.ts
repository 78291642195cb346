/** A place of the browser page, in the fragment of its URL: `#plants/7?after=99`. */
export interface Place {
  readonly entity: string
  /** An id, or `new`. */
  readonly record: string | undefined
  /** The parameters of the list, with the names of the interface. */
  readonly parameters: ReadonlyMap<string, string>
}

export function readPlace(fragment: string): Place {
  const [path = '', query] = fragment.replace(/^#/, '').split('?', 2)
  const [entity = '', record] = path.split('/', 2)
  return { entity, record, parameters: new Map(new URLSearchParams(query)) }
}

export function toFragment({ entity, record, parameters }: Place): string {
  const query = `${new URLSearchParams([...parameters])}`
  const parts = ['#', entity]
  if (record !== undefined) {
    parts.push('/', record)
  }
  if (query !== '') {
    parts.push('?', query)
  }
  return parts.join('')
}

export function toList(place: Place): Place {
  return { ...place, record: undefined }
}

/** How many pages of a list "Previous" goes back. */
const pagesBeforeMax = 1_000

/** The state of an entry of the tab's history. A reload keeps it. */
interface Visit {
  /** How many entries of the browser page are before it. */
  readonly position: number
  /** The fragment of the entry before it. */
  readonly cameFrom: string
  /**
   * The ids after which the pages of the list before it begin, the nearest last. The
   * first page begins after `''`.
   */
  readonly pagesBefore: readonly string[]
}

let visit: Visit = { position: -1, cameFrom: '', pagesBefore: [] }
let fragmentShown = ''

/** Notes that a place is shown now. Returns whether the tab's history went forward. */
export function noteVisit(place: Place): boolean {
  const known = history.state as Visit | null
  const { position } = visit
  if (known !== null) {
    visit = known
  } else if (isOfSameList(place)) {
    visit = nextVisit(visit.pagesBefore)
  } else {
    visit = nextVisit([])
  }
  fragmentShown = toFragment(place)
  history.replaceState(visit, '', fragmentShown)
  return visit.position > position
}

function isOfSameList(place: Place): boolean {
  const listShown = toList(readPlace(fragmentShown))
  return toFragment(toList(place)) === toFragment(listShown)
}

function nextVisit(pagesBefore: readonly string[]): Visit {
  return { position: visit.position + 1, cameFrom: fragmentShown, pagesBefore }
}

/** Makes a place the next entry of the tab's history. */
export function addVisit(place: Place, pagesBefore: readonly string[] = []): void {
  const next = nextVisit(pagesBefore.slice(-pagesBeforeMax))
  history.pushState(next, '', toFragment(place))
}

export function pagesBefore(): readonly string[] {
  return visit.pagesBefore
}

export function visitPosition(): number {
  return visit.position
}

/** Goes back to the entry of this position after the browser has left it. */
export function returnTo(position: number): void {
  const here = (history.state as Visit | null)?.position ?? visit.position + 1
  if (here !== position) {
    history.go(position - here)
  }
}

/**
 * Leaves the present place for another one, without a new entry in the tab's history.
 * Returns whether the URL already shows the other place. Otherwise `popstate` follows.
 */
export function leaveFor(place: Place): boolean {
  if (visit.cameFrom === toFragment(place)) {
    history.back()
    return false
  }
  history.replaceState(visit, '', toFragment(place))
  return true
}
