import type { Entity, Member } from './description.ts'
import { byId, element } from './dom.ts'
import { refuse } from './messages.ts'
import type { Place } from './place.ts'
import { classOf, integerProblem, readInteger } from './values.ts'

const form = byId('filters', HTMLFormElement)
const fieldset = byId('filter-fields', HTMLElement)
const fold = byId('fold', HTMLButtonElement)

/** A field above the table, for a parameter of the list. */
interface FilterField {
  readonly parameter: Member
  readonly label: string
  readonly input: HTMLInputElement
  /** The value in the place. The input differs from it until "Show" is pressed. */
  placed: string
}

let entityOfFields: string | undefined
let fields: readonly FilterField[] = []

/** Shows the fields of the place: from which id, and the filters. */
export function showFilters(
  entity: Entity,
  place: Place,
  onShow: (place: Place) => void,
): void {
  if (entityOfFields !== entity.name) {
    createFields(entity)
  }
  entityOfFields = entity.name
  for (const field of fields) {
    placeValue(field, place)
  }
  const { length } = fields.filter(field => field.placed !== '')
  fold.textContent = length === 0 ? 'Filter' : `Filter (${length})`
  form.onsubmit = event => {
    event.preventDefault()
    const parameters = readFields()
    if (parameters) {
      setFolded(true)
      onShow({ entity: entity.name, record: undefined, parameters })
    }
  }
}

function placeValue(field: FilterField, place: Place): void {
  const { parameter, input } = field
  const text = place.parameters.get(parameter.name) ?? ''
  // The interface asks for what follows an id.
  let value = text
  if (parameter.name === 'after' && /^-?\d+$/.test(text)) {
    value = `${BigInt(text) + 1n}`
  }
  if (value !== field.placed) {
    input.value = value
  }
  field.placed = value
}

function createFields({ members, filters, hasPages }: Entity): void {
  const ids = members.filter(({ name }) => hasPages && name === 'id')
  fields = [
    ...ids.map(id => createField({ ...id, name: 'after' }, 'From id')),
    ...filters.map(filter => createField(filter, filter.name.replaceAll('_', ' '))),
  ]
  const labels = fields.map(({ label, input }) =>
    element('label', {}, `${label} `, input),
  )
  fieldset.replaceChildren(...labels, element('button', {}, 'Show'))
}

function createField(parameter: Member, label: string): FilterField {
  const { description, bounds } = parameter
  const input = element('input', {
    title: description,
    spellcheck: false,
    autocapitalize: 'none',
    enterKeyHint: 'search',
    translate: false,
    className: classOf(bounds),
  })
  return { parameter, label, input, placed: '' }
}

/** Returns the parameters of the list, or says which field is wrong. */
function readFields(): ReadonlyMap<string, string> | undefined {
  for (const { parameter, label, input } of fields) {
    const problem = findProblem(input.value, parameter)
    input.setAttribute('aria-invalid', `${problem !== undefined}`)
    if (problem !== undefined) {
      refuse(`${label} ${problem}.`)
      input.focus()
      return undefined
    }
  }
  const values = fields.map(field => [field.parameter.name, readField(field)] as const)
  return new Map(values.filter(([, value]) => value !== ''))
}

function findProblem(text: string, { bounds }: Member): string | undefined {
  if (
    bounds === undefined ||
    text.trim() === '' ||
    readInteger(text, bounds) !== undefined
  ) {
    return undefined
  }
  return integerProblem(text, bounds)
}

/** Returns the value of a parameter, `''` if it is not to be sent. */
function readField({ parameter, input }: FilterField): string {
  const { name, bounds } = parameter
  if (bounds === undefined) {
    return input.value
  }
  const integer = readInteger(input.value, bounds)
  // The interface asks for what follows an id. No id is before the smallest.
  const isFirst = name === 'after' && integer === bounds.minimum
  if (integer === undefined || isFirst) {
    return ''
  }
  return `${name === 'after' ? integer - 1n : integer}`
}

/** Folds the fields into a button, on a phone only. */
function setFolded(isFolded: boolean): void {
  fold.setAttribute('aria-expanded', `${!isFolded}`)
}

fold.addEventListener('click', () =>
  setFolded(fold.getAttribute('aria-expanded') === 'true'),
)
