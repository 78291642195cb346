import { type Change, participle } from './change.ts'
import { type Entity, int64, readEntities } from './description.ts'
import { byId, element, ignoreHeldKeys } from './dom.ts'
import { showFilters } from './filters.ts'
import { List, type View } from './list.ts'
import { clearMessages, clearUnsaved, keepUnsaved, refuse, tell } from './messages.ts'
import {
  addVisit,
  historyRest,
  leaveFor,
  noteVisit,
  type Place,
  pagesBefore,
  readPlace,
  toFragment,
  toList,
} from './place.ts'
import { askToDiscard } from './question.ts'
import { capitalized, RecordForm } from './record-form.ts'
import { createRecords, readRecord, type Stored } from './records.ts'
import {
  showWhatIsAllowed,
  signInButton,
  signOut,
  signOutButton,
  token,
  toWords,
} from './session.ts'
import { integerProblem, readInteger } from './values.ts'

const navigation = byId('entities', HTMLElement)
const newButton = byId('new', HTMLButtonElement)

let entities: readonly Entity[] = []
const list = new List(go)
/** The forms that are shown, or wait hidden. */
let forms: readonly RecordForm[] = []
/** The form of the record in the URL, if it is open. */
let formOfUrl: FormOfUrl | undefined
/** Ends the reading of the record that is to be opened. */
let opening = new AbortController()
/** Whether a question is open that decides if a form is left. */
let isLeaving = false

interface FormOfUrl {
  readonly form: RecordForm
  readonly place: Place
}

/** Shows the place of the URL, once the user has agreed to leave what was typed. */
async function show(): Promise<void> {
  await historyRest()
  if (isLeaving) {
    return
  }
  if (formOfUrl !== undefined && !isInUrl(formOfUrl.place)) {
    isLeaving = true
    const hasLeft = await leaveForms()
    isLeaving = false
    if (!hasLeft) {
      // The entries of the browser may be unknown, so the form gets a new one.
      return addVisit(formOfUrl.place, pagesBefore())
    }
    formOfUrl = undefined
  }
  const place = placeOfUrl()
  const entity = entities.find(({ name }) => name === place.entity)
  if (entity === undefined) {
    return refuse(`There are no ${place.entity || 'entities'} in the description.`)
  }
  await showView({ entity, records: createRecords(entity), place })
}

/** Without an entity in its URL, the browser page shows the first one. */
function placeOfUrl(): Place {
  const place = readPlace(location.hash)
  const entity = place.entity || entities[0]?.name
  return { ...place, entity: entity ?? '' }
}

function isInUrl(place: Place): boolean {
  return toFragment(place) === toFragment(placeOfUrl())
}

/** Closes all forms, the uppermost first. Resolves to whether the user has agreed. */
async function leaveForms(): Promise<boolean> {
  for (const form of forms.toReversed()) {
    if (form.isShown && !(await form.leave())) {
      return false
    }
  }
  return true
}

async function showView(view: View): Promise<void> {
  const { place } = view
  const isNew = noteVisit(place)
  const listView = { ...view, place: toList(place) }
  showHead(listView)
  const isListShown = list.isAt(listView.place)
  if (!isListShown || place.record !== undefined) {
    clearMessages()
  }
  showRecord(view)
  if (isListShown) {
    return
  }

  if (isNew) {
    scrollTo(0, 0)
  }
  await list.show(listView)
}

/** Shows what is above the table of a list. */
function showHead({ entity, place }: View): void {
  document.title = `${entity.name} – Plant Store`
  showEntities(entity)
  showWhatIsAllowed(entity.name)
  newButton.hidden = entity.creation === undefined
  newButton.onclick = () => go({ ...place, record: 'new' }, [])
  showFilters(entity, place, to => go(to, []))
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
  navigation.replaceChildren(...links)
}

/** Goes to a place, or reads the list again if it is already there. */
async function go(place: Place, pagesBefore: readonly string[]): Promise<void> {
  await historyRest()
  if (!isInUrl(place)) {
    addVisit(place, pagesBefore)
  }
  if (list.isAt(place)) {
    clearMessages()
    list.refresh()
  } else if (place.record === undefined) {
    scrollTo(0, 0)
  }
  await show()
}

/**
 * Goes where a link of the page leads. Browsers differ in what they do for a link to the
 * place that is shown.
 */
function followLink(event: MouseEvent): void {
  const { target } = event
  const link = target instanceof Element && target.closest('a')
  const href = link ? link.getAttribute('href') : undefined
  const isForBrowser = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey
  if (!href?.startsWith('#') || isForBrowser || event.defaultPrevented) {
    return
  }
  event.preventDefault()
  const place = readPlace(href)
  go(place, list.isAt(toList(place)) ? pagesBefore() : [])
}

/** Opens the form of the place's record. */
async function showRecord(view: View): Promise<void> {
  opening.abort()
  opening = new AbortController()
  const { signal } = opening
  const { entity, records, place } = view
  const { record } = place
  if (record === undefined || formOfUrl !== undefined) {
    return
  }
  if (record === 'new' && entity.creation !== undefined) {
    return showFormOfUrl(view, undefined)
  }
  const idMember = entity.members.find(({ name }) => name === 'id')
  const bounds = idMember?.bounds ?? int64
  const id = readInteger(record, bounds)
  if (id === undefined) {
    refuse(`The id ${integerProblem(record, bounds)}.`)
    return leaveRecord(place)
  }
  const takeBack = tell(`Loading ${entity.kind} ${id} …`)
  try {
    const stored = await readRecord(records, id, signal)
    signal.throwIfAborted()
    if (stored === undefined) {
      showGone(view, id)
    } else {
      showFormOfUrl(view, stored)
    }
  } catch (error) {
    if (!signal.aborted) {
      showUnread(view, id, toWords(error))
    }
  } finally {
    takeBack()
  }
}

function showFormOfUrl(view: View, opened: Stored | undefined): void {
  const form = openForm(view, opened)
  formOfUrl = { form, place: view.place }
}

function openForm(view: View, opened: Stored | undefined): RecordForm {
  const { entity, records, place } = view
  const toUrl = (id: bigint) => toFragment({ ...place, record: `${id}` })
  const form = new RecordForm({
    entity,
    records,
    opened,
    toUrl,
    onClose: hasChanged => returnAfterClosing(form, opened?.item.id, hasChanged),
    onDone: change => returnAfterChange(form, entity, change),
    onLateFailure: words => keepUnsaved(form, words),
    async openBeside(id) {
      const stored = await readRecord(records, id)
      if (stored === undefined) {
        throw new Error(`There is no ${entity.kind} ${id} any more.`)
      }
      openForm(view, stored)
    },
  })
  forms = [...forms.filter(each => !each.isOver), form]
  form.show()
  return form
}

function showGone({ entity, place }: View, id: bigint): void {
  const neighbour = list.neighbourOf(id)
  const hadRow = list.removeRow(id)
  refuse(`There is no ${entity.kind} ${id}.`)
  leaveRecord(place)
  if (hadRow) {
    list.focusRow(neighbour)
  }
}

function showUnread({ entity, place }: View, id: bigint, reason: string): void {
  if (!list.failRow(id, `Not opened: ${reason}`)) {
    refuse(`${capitalized(entity.kind)} ${id}: ${reason}`)
  }
  // A place that needs a token is shown once there is one.
  if (token() !== '') {
    leaveRecord(place)
  }
}

/** Goes back to the list after a form was closed. */
function returnAfterClosing(
  form: RecordForm,
  id: bigint | undefined,
  hasChanged: boolean,
): void {
  leavePlaceOf(form)
  list.focusRow(id)
  if (hasChanged) {
    refreshList(id)
  }
}

/** Goes back to the list after a form's change was made, and reads it again. */
function returnAfterChange(form: RecordForm, { kind }: Entity, change: Change): void {
  const { id, verb } = change
  tell(capitalized(`${kind} ${id} is ${participle(change)}.`))
  const neighbour = list.neighbourOf(id)
  leavePlaceOf(form)
  refreshList(verb === 'delete' ? neighbour : id)
}

async function refreshList(idToFocus: bigint | undefined): Promise<void> {
  await list.refresh()
  list.focusRow(idToFocus)
}

/** Leaves the place of a form that has ended, unless the browser has already left it. */
function leavePlaceOf(form: RecordForm): void {
  if (formOfUrl?.form !== form) {
    return
  }
  const { place } = formOfUrl
  formOfUrl = undefined
  if (isInUrl(place)) {
    leaveRecord(place)
  }
}

async function leaveRecord(place: Place): Promise<void> {
  await leaveFor(toList(place))
  await show()
}

/**
 * Reads what the page shows again, the list and the record of the URL. Both ask for a
 * token, in one dialog.
 */
function signInAgain(): void {
  clearMessages()
  list.refresh()
  show()
}

async function leaveAndSignOut(): Promise<void> {
  const unsaved = forms.filter(form => form.isUnsaved)
  const titles = unsaved.map(form => form.title).join(', ')
  if (unsaved.length > 0 && !(await askToDiscard(document.body, titles))) {
    return
  }
  for (const form of unsaved) {
    form.discard()
  }
  clearUnsaved()
  clearMessages()
  signOut()
  list.clear()
  await show()
}

signOutButton.addEventListener('click', leaveAndSignOut)
signInButton.addEventListener('click', signInAgain)
document.addEventListener('click', followLink)
addEventListener('beforeunload', event => {
  if (forms.some(form => form.isUnsaved)) {
    event.preventDefault()
  }
})
ignoreHeldKeys()

try {
  const answer = await fetch('openapi.json')
  entities = readEntities(await answer.text())
  addEventListener('popstate', show)
  await show()
} catch (error) {
  refuse(`The interface description cannot be read: ${toWords(error)}`)
}
