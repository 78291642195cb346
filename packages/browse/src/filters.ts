import { int64Min, isInt64 } from '@plant-store/client/page'
import { button, byId, element } from './dom.ts'
import { refuse } from './messages.ts'
import { type Place, withParameter } from './place.ts'
import type { Filter } from './plants.ts'
import { integerProblem, readInteger, toCell } from './values.ts'

const form = byId('filters')
const fieldset = byId('filter-fields')
const fold = byId('fold')

/** The labels of the fields above the table, in their order. The last is the search. */
const labels: Readonly<Record<Filter, string>> = {
  after: 'From id',
  tag: 'tag',
  name_contains: 'name contains',
}

const fields = Object.entries(labels).map(([name, label]) => createField(name, label))
let shownPlace: Place = { plant: undefined, parameters: new Map() }
let goTo: (place: Place) => void = () => {}

/** Returns a field above the table, for a parameter of the list. */
function createField(name: string, label: string) {
  const input = element('input', {
    spellcheck: false,
    autocapitalize: 'none',
    enterKeyHint: 'search',
    translate: false,
  })
  const clear = button('×', () => {
    input.value = ''
    input.focus()
    goTo(withParameter(shownPlace, name))
  })
  Object.assign(clear, { ariaLabel: `Clear ${label}`, hidden: true })
  fieldset.append(element('div', {}, element('label', {}, `${label} `, input), clear))
  return { name, label, input, clear }
}

fieldset.append(element('button', {}, 'Show'))

/** Shows the fields of the place: from which id, and the filters. */
export function showFilters(place: Place, onShow: (place: Place) => void): void {
  for (const { name, input, clear } of fields) {
    const value = place.parameters.get(name)
    if (value === shownPlace.parameters.get(name)) {
      continue
    }
    const text = toInput(name, value ?? '')
    input.value = text
    const isShown = value === undefined || (text !== '' && input.value === text)
    if (!isShown) {
      input.value = ''
    }
    input.placeholder = isShown ? '' : toCell(value).textContent
    clear.hidden = value === undefined
    // The text as the input shows it. An edited text differs from it.
    input.defaultValue = input.value
  }
  shownPlace = place
  goTo = onShow
  const { length } = fields.filter(({ name }) => place.parameters.has(name))
  fold.textContent = length === 0 ? 'Filter' : `Filter (${length})`
}

/** Returns the text for a value, `''` if there is none. */
function toInput(name: string, value: string) {
  if (name !== 'after' || !/^-?\d+$/.test(value)) {
    return value
  }
  // The interface asks for what follows an id. No id follows the greatest.
  const id = BigInt(value) + 1n
  return isInt64(id) ? `${id}` : ''
}

/** Returns the filters of a place in words, with signs for what is invisible. */
export function describeFilters({ parameters }: Place): HTMLElement {
  const words = [...parameters].flatMap(([name, value], index) => {
    const label = name === 'after' ? 'id after' : name.replaceAll('_', ' ')
    return [`${index === 0 ? '' : ', '}${label} `, toCell(value, 60)]
  })
  return element('span', {}, ...words)
}

/** Returns the place of the list that the fields ask for, or says which is wrong. */
function readFields() {
  let place = shownPlace
  for (const { name, label, input } of fields) {
    const text = input.value
    const isEdited = text !== input.defaultValue
    const isNoId = text.trim() !== '' && readInteger(text) === undefined
    const isWrong = isEdited && name === 'after' && isNoId
    input.ariaInvalid = `${isWrong}`
    if (isWrong) {
      refuse(`${label} ${integerProblem(text)}.`)
      input.focus()
      return
    }
    if (isEdited) {
      place = withParameter(place, name, toParameter(name, text))
    }
  }
  return place
}

/** Returns the value for a text that was typed, `undefined` if there is none. */
function toParameter(name: string, text: string): string | undefined {
  if (name !== 'after') {
    return text || undefined
  }
  const id = readInteger(text)
  // No id is before the smallest.
  const isFirst = id === undefined || id === int64Min
  return isFirst ? undefined : `${id - 1n}`
}

/** Folds the fields into a button, on a phone only. */
function setFolded(isFolded: boolean) {
  fold.ariaExpanded = `${!isFolded}`
}

form.addEventListener('submit', event => {
  event.preventDefault()
  const place = readFields()
  if (place !== undefined) {
    setFolded(true)
    goTo(place)
  }
})

fold.addEventListener('click', () => setFolded(fold.ariaExpanded === 'true'))

// "/" goes to the search, as on other pages, unless somebody types it.
document.addEventListener('keydown', event => {
  const isElsewhere =
    (event.target as Element).closest('input, textarea, dialog') !== null
  if (event.key === '/' && !isElsewhere) {
    event.preventDefault()
    setFolded(false)
    fields.at(-1)?.input.focus()
  }
})
