import { type Entity, readEntities } from './description.ts'
import { byId, element } from './dom.ts'
import { clearRows, newButton, showFilters, showRows } from './list.ts'
import { go, leaveFor, noteVisit, type Place, readPlace, toFragment } from './place.ts'
import { closeRecord, openRecord } from './record.ts'
import { createRecords, type Records } from './records.ts'
import { signedIn, signOut, token, toWords } from './session.ts'
import { integerProblem, readInteger } from './values.ts'

const refusal = byId('refusal', HTMLElement)
const happened = byId('happened', HTMLElement)
const signOutButton = byId('sign-out', HTMLButtonElement)

let entities: readonly Entity[] = []
/** The entities that the token may not change, as the store has said. */
const forbidden = new Set<string>()
let showing = new AbortController()
/** The fragment of the list in the table, and what is to be said once it is shown. */
let [listed, news] = ['', '']

/** Shows the place that the URL names. */
async function show(): Promise<void> {
  showing.abort()
  showing = new AbortController()
  const { signal } = showing
  refusal.textContent = ''
  happened.textContent = news
  news = ''
  closeRecord()
  const place = readPlace(location.hash)
  const entity = entities.find(({ name }) => name === place.entity) ?? entities[0]
  try {
    if (entity === undefined) {
      throw new Error('The interface description has no entity.')
    }
    await showPlace(entity, { ...place, entity: entity.name }, signal)
  } catch (error) {
    if (!signal.aborted) {
      refusal.textContent = toWords(error)
    }
  }
  signOutButton.hidden = token() === ''
}

async function showPlace(
  entity: Entity,
  place: Place,
  signal: AbortSignal,
): Promise<void> {
  noteVisit(place)
  const records = createRecords(entity)
  const list = { ...place, record: undefined }
  document.title = `${entity.name} – Plant Store`
  showEntities(entity)
  newButton.hidden = entity.creation === undefined || forbidden.has(entity.name)
  newButton.onclick = () => go({ ...place, record: 'new' }, show)
  showFilters(entity, list, to => {
    listed = ''
    go(to, show)
  })
  if (place.record !== undefined) {
    await showRecord(entity, records, place, signal)
  }
  if (listed === toFragment(list)) {
    return
  }
  listed = ''
  await showRows(entity, records, list, signal)
  listed = toFragment(list)
}

function showEntities(shown: Entity): void {
  const links = entities.map(({ name }) => {
    const href = toFragment({ entity: name, record: undefined, parameters: new Map() })
    const link = element('a', { href }, name)
    if (name === shown.name) {
      link.setAttribute('aria-current', 'page')
    }
    return link
  })
  byId('entities', HTMLElement).replaceChildren(...links)
}

async function showRecord(
  entity: Entity,
  records: Records,
  place: Place,
  signal: AbortSignal,
): Promise<void> {
  const { record = 'new' } = place
  const bounds = entity.members.find(({ name }) => name === 'id')?.bounds
  const id = bounds && readInteger(record, bounds)
  if (bounds && id === undefined && record !== 'new') {
    throw new Error(`The id ${integerProblem(bounds)}.`)
  }
  const stored =
    id === undefined
      ? undefined
      : await signedIn(() => records.readVersioned(id, { signal }))
  openRecord(stored, {
    ...{ entity, records, place, forbidden },
    onClose(text = '') {
      news = text
      if (text !== '') {
        listed = ''
      }
      leaveFor({ ...place, record: undefined }, show)
    },
  })
}

signOutButton.addEventListener('click', () => {
  signOut()
  forbidden.clear()
  listed = ''
  clearRows()
  show()
})

try {
  const answer = await fetch('openapi.json')
  entities = readEntities(await answer.text())
  addEventListener('popstate', show)
  await show()
} catch (error) {
  refusal.textContent = `The interface description cannot be read: ${toWords(error)}`
}
