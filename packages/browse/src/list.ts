import type { Entity, Member } from './description.ts'
import { byId, element } from './dom.ts'
import { canGoBack, type Place, toFragment } from './place.ts'
import type { Item, Records } from './records.ts'
import { signedIn } from './session.ts'
import { integerProblem, readInteger, toCell } from './values.ts'

const rowsMax = 100

const form = byId('filters', HTMLFormElement)
const refusal = byId('refusal', HTMLElement)
const table = byId('table', HTMLTableElement)
const rows = byId('rows', HTMLElement)
const total = byId('total', HTMLElement)
const progress = byId('progress', HTMLElement)
const button = (id: string) => byId(id, HTMLButtonElement)
const [stop, first, back, next] = [
  button('stop'),
  button('first'),
  button('back'),
  button('next'),
]

let fieldsOf: string | undefined
let fields: readonly ReturnType<typeof toField>[] = []

/** Shows the fields of the place: from which id, and the filters. */
export function showFilters(
  entity: Entity,
  place: Place,
  onShow: (place: Place) => void,
): void {
  if (fieldsOf !== entity.name) {
    makeFields(entity)
  }
  fieldsOf = entity.name
  for (const { parameter, input } of fields) {
    const value = place.parameters.get(parameter.name) ?? ''
    // The interface asks for what follows an id.
    input.value =
      parameter.name === 'after' && /^-?\d+$/.test(value)
        ? `${BigInt(value) + 1n}`
        : value
  }
  form.onsubmit = event => {
    event.preventDefault()
    const parameters = readFields()
    if (parameters) {
      onShow({ entity: entity.name, record: undefined, parameters })
    }
  }
}

function makeFields({ members, filters, hasPages }: Entity): void {
  const from = members.filter(({ name }) => hasPages && name === 'id')
  fields = [
    ...from.map(id => toField({ ...id, name: 'after' }, 'From id')),
    ...filters.map(filter => toField(filter, filter.name.replaceAll('_', ' '))),
  ]
  const labels = fields.map(({ label, input }) =>
    element('label', {}, `${label} `, input),
  )
  form.replaceChildren(...labels, element('button', {}, 'Show'), newButton)
}

/** Returns a field above the table, for a parameter of the list. */
function toField(parameter: Member, label: string) {
  const { description: title, bounds } = parameter
  const input = element('input', {
    title,
    spellcheck: false,
    className: bounds ? 'integer' : '',
  })
  return { parameter, label, input }
}

/** Returns the parameters of the list, or says which field is wrong. */
function readFields(): ReadonlyMap<string, string> | undefined {
  const parameters = new Map<string, string>()
  for (const { parameter, label, input } of fields) {
    const { name, bounds } = parameter
    const integer = bounds && readInteger(input.value, bounds)
    const isWrong = input.value !== '' && bounds !== undefined && integer === undefined
    input.setAttribute('aria-invalid', `${isWrong}`)
    if (isWrong) {
      refusal.textContent = `${label} ${integerProblem(bounds)}`
      input.focus()
      return undefined
    }
    if (name !== 'after' && input.value !== '') {
      parameters.set(name, input.value)
    }
    if (name === 'after' && bounds && integer !== undefined && integer > bounds.minimum) {
      parameters.set(name, `${integer - 1n}`)
    }
  }
  return parameters
}

export const newButton = element('button', { type: 'button' }, 'New')

/**
 * Reads the rows of a place and shows them. A search goes on from page to page, until there are enough rows or it is
 * stopped.
 */
export async function showRows(
  entity: Entity,
  records: Records,
  place: Place,
  signal: AbortSignal,
): Promise<void> {
  const { after: start, ...filters } = Object.fromEntries(place.parameters)
  // Only such a filter lets the store answer with an empty page that has a next one.
  const searches = entity.filters.some(
    ({ name }) => name.endsWith('_contains') && filters[name] !== undefined,
  )
  const counts = entity.canCount && !searches
  const stopping = new AbortController()
  const reading = AbortSignal.any([signal, stopping.signal])
  stop.onclick = () => stopping.abort()
  stop.hidden = !searches
  table.setAttribute('aria-busy', 'true')
  let body: HTMLElement | undefined
  let count = 0
  let after = start === undefined ? undefined : BigInt(start)
  let hasMore = true
  try {
    while (hasMore && count < rowsMax && (searches || body === undefined)) {
      const query = {
        ...filters,
        ...(counts && { count: true }),
        ...(after !== undefined && { after }),
      }
      const page = await signedIn(() =>
        records.list({ ...query, limit: rowsMax - count }, { signal: reading }),
      )
      body ??= showTable(entity)
      body.append(...page.items.map(item => toRow(item, entity.members, place)))
      count += page.items.length
      hasMore = page.next !== undefined
      after = page.next
      total.textContent = toTotal(page.total)
      progress.textContent =
        searches && hasMore ? `Looked up to id ${after}, ${count} found` : ''
    }
  } catch (error) {
    if (!stopping.signal.aborted || signal.aborted) {
      throw error
    }
  } finally {
    if (!signal.aborted) {
      stop.hidden = true
      table.removeAttribute('aria-busy')
    }
  }
  rows.textContent = `${count} rows, ${hasMore ? 'more follow' : 'no more'}`
  const toList = (parameters: object) => () => {
    location.hash = toFragment({
      ...place,
      parameters: new Map(Object.entries(parameters)),
    })
  }
  first.disabled = start === undefined
  first.onclick = toList(filters)
  back.disabled = !canGoBack()
  next.disabled = !hasMore
  next.onclick = toList(after === undefined ? filters : { ...filters, after })
}

/** Leaves nothing of what a token could see. */
export function clearRows(): void {
  table.replaceChildren()
  for (const each of [rows, total, progress]) {
    each.textContent = ''
  }
  for (const each of [first, back, next]) {
    each.disabled = true
  }
  stop.hidden = true
}

/** Returns the place for the rows. */
function showTable({ name, members }: Entity): HTMLElement {
  const body = element('tbody')
  const heads = members.map(({ name, description, bounds }) =>
    element(
      'th',
      { scope: 'col', title: description, className: bounds ? 'integer' : '' },
      name,
    ),
  )
  table.replaceChildren(
    element('caption', {}, name),
    element('thead', {}, element('tr', {}, ...heads)),
    body,
  )
  return body
}

function toRow(item: Item, members: readonly Member[], place: Place): HTMLElement {
  const cells = members.map(({ name, bounds }) => {
    const text = toCell(item[name])
    if (name !== 'id') {
      return element(
        'td',
        { className: bounds ? 'integer' : '' },
        element('bdi', {}, text),
      )
    }
    const link = element('a', { href: toFragment({ ...place, record: text }) }, text)
    return element('th', { scope: 'row', className: 'integer' }, link)
  })
  return element('tr', {}, ...cells)
}

function toTotal(total: number | string | undefined): string {
  if (total === undefined) {
    return ''
  }
  const isExact = typeof total === 'number'
  const count = isExact ? total : Number.parseInt(total, 10)
  return `${count.toLocaleString('en')} ${isExact ? '' : 'or more '}in all`
}

back.addEventListener('click', () => history.back())
