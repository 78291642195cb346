/** What the page shows, as its URL's fragment says: `#plants/7?after=99&tag=climber`. */
export interface Place {
  readonly entity: string
  /** An id, or `new`. */
  readonly record: string | undefined
  /** Of the list, with the names that the interface gives them. */
  readonly parameters: ReadonlyMap<string, string>
}

export function readPlace(fragment: string): Place {
  const [path = '', query] = fragment.replace(/^#/, '').split('?', 2)
  const [entity = '', record] = path.split('/', 2)
  return { entity, record, parameters: new Map(new URLSearchParams(query)) }
}

export function toFragment({ entity, record, parameters }: Place): string {
  const query = `${new URLSearchParams([...parameters])}`
  return `#${entity}${record === undefined ? '' : `/${record}`}${query === '' ? '' : `?${query}`}`
}

/** An entry of the tab's history, which a reload keeps. */
interface Entry {
  /** The entries of this page before it. */
  readonly steps: number
  /** The fragment of the entry before it. */
  readonly before: string
}

let entry: Entry = { steps: -1, before: '' }
let shown = ''

/** Notes that the place of the URL is shown. An entry of the history without a state is new. */
export function noteVisit(place: Place): void {
  const known = history.state as Entry | null
  entry = known ?? { steps: entry.steps + 1, before: shown }
  shown = toFragment(place)
  history.replaceState(entry, '', shown)
}

export const canGoBack = () => entry.steps > 0

/** Goes to a place, or calls `show` if the page is already there. */
export function go(place: Place, show: () => void): void {
  if (toFragment(place) === shown) {
    show()
  } else {
    location.hash = toFragment(place)
  }
}

/** Goes to a place instead of the present one, which is not kept in the history. */
export function leaveFor(place: Place, show: () => void): void {
  if (entry.before === toFragment(place)) {
    history.back()
  } else {
    history.replaceState(entry, '', toFragment(place))
    show()
  }
}
