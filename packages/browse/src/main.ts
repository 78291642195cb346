import { participle } from './change.ts'
import { byId } from './dom.ts'
import { describeFilters, showFilters } from './filters.ts'
import { isExact } from './json.ts'
import { List } from './list.ts'
import { clearMessages, clearUnsaved, refuse, tell } from './messages.ts'
import {
  addVisit,
  historyRest,
  isInUrl,
  leaveFor,
  noteVisit,
  type Place,
  pagesBefore,
  placeOfUrl,
  readPlace,
  replaceVisit,
  toList,
} from './place.ts'
import type { PlantForm } from './plant-form.ts'
import { askForScope, readPlant, type StoredPlant, toTitle } from './plants.ts'
import { failRow, findRow, focusRow, neighbourOf } from './rows.ts'
import {
  hasOtherToken,
  messageOf,
  signInButton,
  signOut,
  signOutButton,
  token,
} from './session.ts'
import { integerProblem, readInteger, toCell } from './values.ts'

const newButton = byId('new')

const list = new List(go)
/** The forms that are shown, or wait hidden. */
let forms: readonly PlantForm[] = []
/** The form of the plant in the URL, if it is open. */
let formOfUrl: { readonly form: PlantForm; readonly place: Place } | undefined
/** Ends the reading of the plant that is to be opened. */
let opening = new AbortController()
/** Whether a question is open that decides if a form is left. */
let isLeaving = false

/** Shows the place of the URL, once the user has agreed to leave what was typed. */
async function show() {
  await historyRest()
  if (isLeaving) {
    return
  }
  if (formOfUrl !== undefined && !isInUrl(formOfUrl.place)) {
    const { place } = formOfUrl
    if (!(await leaveForms())) {
      // The entries of the browser may be unknown, so the form gets a new one.
      return addVisit(place, pagesBefore())
    }
    formOfUrl = undefined
  }
  await showPlace(placeOfUrl())
}

/** Closes all forms, the uppermost first. Resolves to whether the user has agreed. */
async function leaveForms() {
  isLeaving = true
  try {
    for (const form of forms.toReversed()) {
      if (form.state === 'shown' && !(await form.leave())) {
        return false
      }
    }
    return true
  } finally {
    isLeaving = false
  }
}

async function showPlace(place: Place) {
  const isNew = noteVisit(place)
  const listPlace = toList(place)
  showFilters(listPlace, go)
  const isListShown = list.isAt(listPlace)
  if (!isListShown || place.plant !== undefined) {
    clearMessages()
  }
  showPlant(place)
  if (isListShown) {
    return
  }

  if (isNew) {
    scrollTo(0, 0)
  }
  await list.show(listPlace)
  // Not before the list, which is what the user waits for.
  loadForms().catch(() => {})
  await askForScope()
}

/** Goes to a place, or reads the list again if it is already there. */
async function go(place: Place, pagesBefore: readonly string[] = []) {
  await historyRest()
  if (!isInUrl(place)) {
    addVisit(place, pagesBefore)
  }
  if (list.isAt(place)) {
    clearMessages()
    list.refresh()
  } else if (place.plant === undefined) {
    scrollTo(0, 0)
  }
  await show()
}

/**
 * Goes where a link of the page leads. Browsers differ in what they do for a link to the
 * place that is shown.
 */
function followLink(event: MouseEvent) {
  const href = (event.target as Element).closest('a')?.getAttribute('href')
  const isForBrowser = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey
  if (!href?.startsWith('#') || isForBrowser || event.defaultPrevented) {
    return
  }
  event.preventDefault()
  const place = readPlace(href)
  go(place, list.isAt(toList(place)) ? pagesBefore() : [])
}

/** Names what the tab shows: a plant, or the filters of the list. */
function showTitle(text: string) {
  document.title = `${text} – Plant Store`
}

/** Opens the form of the place's plant. */
async function showPlant(place: Place) {
  opening.abort()
  opening = new AbortController()
  const { plant } = place
  if (formOfUrl !== undefined) {
    return
  }
  const filters = describeFilters(place).textContent
  showTitle(filters === '' ? 'plants' : `plants: ${filters}`)
  if (plant === undefined) {
    return
  }
  const id = readInteger(plant)
  if (id === undefined && plant !== 'new') {
    refuse(`The id ${integerProblem(plant)}.`)
    return leaveRecord(place)
  }
  const takeBack = tell(`Loading ${toTitle(id).toLowerCase()} …`)
  await openPlant(place, id, opening.signal)
  takeBack()
}

/** Opens the form of a plant, or of a new one, unless the user has gone elsewhere. */
async function openPlant(place: Place, id: bigint | undefined, signal: AbortSignal) {
  try {
    const [stored, { PlantForm }] = await Promise.all([
      id === undefined ? undefined : readPlant(id, signal),
      loadForms(),
    ])
    signal.throwIfAborted()
    if (id !== undefined && stored === undefined) {
      return showGone(place, id)
    }
    formOfUrl = { form: openForm(PlantForm, stored), place }
    const label = stored && `${toCell(stored.item.name, 60).textContent} (${id})`
    showTitle(label ?? toTitle(id))
  } catch (error) {
    if (!signal.aborted) {
      showUnread(place, id, messageOf(error))
    }
  }
}

/**
 * Fetches the forms after the list is shown. A user who opens a plant before they are
 * there waits for them.
 */
function loadForms() {
  return import('./forms.ts').catch(() => {
    throw new Error('the form did not come. Reload this page')
  })
}

function openForm(Form: typeof PlantForm, opened: StoredPlant | undefined): PlantForm {
  const id = opened?.item.id
  const form = new Form({
    opened,
    onClose(hasChanged) {
      leavePlaceOf(form)
      focusRow(id)
      if (hasChanged) {
        refreshList(id)
      }
    },
    onDone(change) {
      const { id, wanted } = change
      tell(`Plant ${id} is ${participle(change)}.`)
      leavePlaceOf(form)
      refreshList(wanted ? id : neighbourOf(id))
    },
    onStep: stepTo,
    async openBeside(id) {
      const stored = await readPlant(id)
      if (stored === undefined) {
        throw new Error(`There is no plant ${id} any more.`)
      }
      openForm(Form, stored)
    },
  })
  forms = [...forms.filter(each => each.state !== 'over'), form]
  form.show()
  return form
}

/** Shows another plant in the same entry of the tab's history, so that Back closes it. */
async function stepTo(id: bigint) {
  const place = { ...placeOfUrl(), plant: `${id}` }
  if (await leaveForms()) {
    formOfUrl = undefined
    replaceVisit(place)
    await show()
  }
}

function showGone(place: Place, id: bigint) {
  const row = findRow(id)
  const neighbour = neighbourOf(id)
  refuse(`There is no plant ${id}.`)
  leaveRecord(place)
  if (row) {
    row.remove()
    focusRow(neighbour)
  }
}

function showUnread(place: Place, id: bigint | undefined, reason: string) {
  if (!failRow(id, `Not opened: ${reason}`)) {
    refuse(`${toTitle(id)}: ${reason}`)
  }
  // A place that needs a token is shown once there is one.
  if (token() !== '') {
    leaveRecord(place)
  }
}

async function refreshList(idToFocus: bigint | undefined) {
  await list.refresh()
  focusRow(idToFocus)
}

/** Leaves the place of a form that has ended, unless the browser has already left it. */
function leavePlaceOf(form: PlantForm) {
  if (formOfUrl?.form !== form) {
    return
  }
  const { place } = formOfUrl
  formOfUrl = undefined
  if (isInUrl(place)) {
    leaveRecord(place)
  }
}

async function leaveRecord(place: Place) {
  await leaveFor(toList(place))
  await show()
}

async function leaveAndSignOut() {
  const titles = forms.filter(form => form.isUnsaved).map(form => form.title)
  if (titles.length > 0) {
    const { askToDiscard } = await loadForms()
    if (!(await askToDiscard(document.body, titles.join(', ')))) {
      return
    }
  }
  signOut()
  await forget()
}

/** Leaves nothing on the page of what a token could see, and shows the place again. */
async function forget() {
  for (const form of forms) {
    form.discard()
  }
  forms = []
  formOfUrl = undefined
  clearUnsaved()
  clearMessages()
  list.clear()
  await show()
}

newButton.addEventListener('click', () => go({ ...placeOfUrl(), plant: 'new' }))
signOutButton.addEventListener('click', leaveAndSignOut)
signInButton.addEventListener('click', () => {
  clearMessages()
  // Both ask for a token, in one dialog.
  list.refresh()
  show()
})
document.addEventListener('click', followLink)
addEventListener('beforeunload', event => {
  if (forms.some(form => form.isUnsaved)) {
    event.preventDefault()
  }
})
// A page that the browser has kept in memory may be older than a sign-out.
addEventListener('pageshow', event => {
  if (event.persisted && hasOtherToken()) {
    forget()
  }
})
addEventListener('popstate', show)
const starting = byId('starting')
if (isExact) {
  starting.remove()
  show()
} else {
  starting.textContent =
    'This browser rounds large integers. Chromium 114, Firefox 135 and Safari 18.4 do not.'
}
