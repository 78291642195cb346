import type { Entity, Member } from './description.ts'
import { byId, element } from './dom.ts'
import { refuse } from './messages.ts'
import type { Place } from './place.ts'
import { integerProblem, readInteger } from './values.ts'

const form = byId('filters', HTMLFormElement)
const fieldset = byId('filter-fields', HTMLElement)
const fold = byId('fold', HTMLButtonElement)

/** A field above the table, for a parameter of the list. */
interface FilterField {
  readonly parameter: Member
  readonly label: string
  readonly input: HTMLInputElement
  /** The value in the place. What the user has typed since then is not shown yet. */
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
  const filterCount = fields.filter(field => field.placed !== '').length
  fold.textContent = filterCount === 0 ? 'Filter' : `Filter (${filterCount})`
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
  const isAfter = parameter.name === 'after' && /^-?\d+$/.test(text)
  const value = isAfter ? `${BigInt(text) + 1n}` : text
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
    className: bounds ? 'integer' : '',
  })
  return { parameter, label, input, placed: '' }
}

/** Returns the parameters of the list, or says which field is wrong. */
function readFields(): ReadonlyMap<string, string> | undefined {
  const parameters = new Map<string, string>()
  for (const { parameter, label, input } of fields) {
    const { name, bounds } = parameter
    const text = bounds ? input.value.trim() : input.value
    const integer = bounds && readInteger(text, bounds)
    const isWrong = text !== '' && bounds !== undefined && integer === undefined
    input.setAttribute('aria-invalid', `${isWrong}`)
    if (isWrong) {
      refuse(`${label} ${integerProblem(text, bounds)}.`)
      input.focus()
      return undefined
    }
    const value = name === 'after' ? toAfter(integer, bounds?.minimum) : text
    if (value !== '') {
      parameters.set(name, value)
    }
  }
  return parameters
}

/** Returns the id before the first one of the list. Nothing is before the smallest. */
function toAfter(from: bigint | undefined, minimum: bigint | undefined): string {
  return from === undefined || from === minimum ? '' : `${from - 1n}`
}

/** On a phone the fields are folded into a button. */
function setFolded(isFolded: boolean): void {
  fold.setAttribute('aria-expanded', `${!isFolded}`)
}

fold.addEventListener('click', () =>
  setFolded(fold.getAttribute('aria-expanded') === 'true'),
)
