/** A place of the browser page, in the fragment of its URL: `#plants/7?after=99`. */
export interface Place {
  /** An id, or `new`. */
  readonly plant: string | undefined
  /** The parameters of the list, with the names of the interface. */
  readonly parameters: ReadonlyMap<string, string>
}

export function readPlace(fragment: string): Place {
  const [path = '', query] = fragment.replace(/^#/, '').split('?', 2)
  const [, plant] = path.split('/', 2)
  return { plant, parameters: new Map(new URLSearchParams(query)) }
}

export function toFragment({ plant, parameters }: Place): string {
  const query = new URLSearchParams([...parameters])
  const path = plant === undefined ? '#plants' : `#plants/${plant}`
  return parameters.size === 0 ? path : `${path}?${query}`
}

export function placeOfUrl(): Place {
  return readPlace(location.hash)
}

export function isInUrl(place: Place): boolean {
  return toFragment(place) === toFragment(placeOfUrl())
}

/** Returns the same list with another value of a parameter, or without it. */
export function withParameter(place: Place, name: string, value?: string): Place {
  const parameters = new Map(place.parameters)
  if (value === undefined) {
    parameters.delete(name)
  } else {
    parameters.set(name, value)
  }
  return { plant: undefined, parameters }
}

export function toList(place: Place): Place {
  return { ...place, plant: undefined }
}

/** How many pages of a list "Previous" goes back. */
const pagesBeforeMax = 1_000

/** The state of an entry of the tab's history. A reload keeps it. */
interface Visit {
  /** The fragment of the entry before it. */
  readonly cameFrom: string
  /**
   * The ids after which the pages of the list before it begin, the nearest last. The
   * first page begins after `''`.
   */
  readonly pagesBefore: readonly string[]
}

let visit: Visit = { cameFrom: '', pagesBefore: [] }
let fragmentShown = ''

/**
 * Notes that a place is shown now. Returns whether its entry of the tab's history is a
 * new one that the browser has made, as for a bookmark.
 */
export function noteVisit(place: Place): boolean {
  const known = history.state as Visit | null
  const isOfSameList =
    toFragment(toList(place)) === toFragment(toList(readPlace(fragmentShown)))
  const pagesBefore = isOfSameList ? visit.pagesBefore : []
  visit = known ?? { cameFrom: fragmentShown, pagesBefore }
  fragmentShown = toFragment(place)
  history.replaceState(visit, '', fragmentShown)
  return known === null
}

/** Makes a place the next entry of the tab's history, after the one in the URL. */
export function addVisit(place: Place, pagesBefore: readonly string[]): void {
  const cameFrom = toFragment(placeOfUrl())
  const next = { cameFrom, pagesBefore: pagesBefore.slice(-pagesBeforeMax) }
  history.pushState(next, '', toFragment(place))
}

/** Puts a place in the URL without a new entry in the tab's history. */
export function replaceVisit(place: Place): void {
  history.replaceState(history.state, '', toFragment(place))
}

export function pagesBefore(): readonly string[] {
  return visit.pagesBefore
}

/** Pending from `history.back()` to its `popstate`, which would undo another visit. */
let returning = Promise.resolve()

/** Resolves once the URL shows the place that the page was last told to go to. */
export function historyRest(): Promise<void> {
  return returning
}

/**
 * Leaves the present place for another one, without a new entry in the tab's history.
 * Resolves once the URL shows the other place.
 */
export function leaveFor(place: Place): Promise<void> {
  const here = history.state as Visit | null
  if (here?.cameFrom !== toFragment(place)) {
    replaceVisit(place)
    return returning
  }
  returning = new Promise(resolve => {
    addEventListener('popstate', () => resolve(), { once: true })
  })
  history.back()
  return returning
}
