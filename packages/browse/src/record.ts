import { NoAnswerError, RefusedError } from '@plant-store/client'
import type { Entity } from './description.ts'
import { byId, element } from './dom.ts'
import { createField } from './form.ts'
import { type Place, toFragment } from './place.ts'
import { ask, compare } from './question.ts'
import { type Item, type Records, readRecord, type Stored } from './records.ts'
import { isRefused, signedIn, toWords } from './session.ts'

/** A change of a record. */
interface Change {
  /** Such as `saved`. */
  readonly done: string
  /** The record as it will be, `undefined` if it is to be deleted. */
  readonly wanted: Item | undefined
  /** Sends the change for the record as it was read, `undefined` if there was none. */
  send(read: Stored | undefined): Promise<unknown>
}

/** What the form of a record works with. */
export interface RecordOptions {
  readonly entity: Entity
  readonly records: Records
  readonly place: Place
  /** The entities that the token may not change, as the store has said. */
  readonly forbidden: Set<string>
  /** Called once with what has happened, if anything. */
  readonly onClose: (happened?: string) => void
}

const dialog = byId('record', HTMLDialogElement)

export function closeRecord(): void {
  dialog.onclose = null
  dialog.close()
}

/** Opens the form of a record, or of a new one. */
export function openRecord(opened: Stored | undefined, options: RecordOptions): void {
  const { entity, records, place, forbidden, onClose } = options
  const kind = entity.name.replace(/s$/, '')
  const canChange = !forbidden.has(entity.name)
  const canSave = canChange && (opened ? entity.canSave : entity.creation !== undefined)
  const refusal = element('p', { role: 'alert' })
  const fields = entity.members.map(member => createField(member, opened?.item, canSave))
  const save = element('button', { hidden: !canSave }, 'Save')
  const canDelete = canChange && opened !== undefined && entity.canDelete
  const remove = element('button', { type: 'button', hidden: !canDelete }, 'Delete')
  const close = element('button', { type: 'button' }, 'Close')
  const title = opened ? capitalized(`${kind} ${opened.item.id}`) : `New ${kind}`
  const heading = element('h2', { id: 'record-title' }, title)
  const footer = element('footer', {}, save, remove, close)
  const form = element('form', { autocomplete: 'off', noValidate: true })
  form.append(heading, refusal, ...fields.map(field => field.element), footer)
  let happened: string | undefined

  const finish = (text?: string) => {
    happened = text
    dialog.close()
  }
  close.onclick = () => finish()
  dialog.onclose = () => {
    // The event of an earlier form may come late.
    if (!dialog.open) {
      onClose(happened)
    }
  }

  /** Makes a change, until it is made, given up, or the form has to be edited. */
  async function make(change: Change): Promise<void> {
    let base = opened
    for (;;) {
      refusal.replaceChildren()
      const failure: unknown = await signedIn(() => change.send(base)).then(
        () => made,
        error => error,
      )
      if (failure === made) {
        return finish(done(change))
      }
      if (isRefused(failure, 403)) {
        save.hidden = remove.hidden = true
        forbidden.add(entity.name)
      }
      const isUnknown = mayHaveChanged(failure)
      if (!isUnknown && !isRefused(failure, 412) && !isRefused(failure, 404)) {
        return refuse(toWords(failure))
      }
      if (isUnknown) {
        refuse(`It is unknown whether it was ${change.done}. Reading it again.`)
      }
      const now = await readRecord(records, id(change)).catch(error => {
        refuse(`It is unknown whether it was ${change.done}: ${toWords(error)}`)
        return null
      })
      if (now === null) {
        return
      }
      if (isSame(now?.item, change.wanted)) {
        return finish(done(change))
      }
      if (now?.version === base?.version) {
        return refuse(`It was not ${change.done}: ${toWords(failure)}`)
      }
      if (opened === undefined) {
        return exists(id(change))
      }
      const answer = await askAbout(change, now)
      if (answer === 'Keep what is there') {
        return finish()
      }
      if (answer === 'Go on editing') {
        return
      }
      base = now
    }
  }

  const id = ({ wanted }: Change) => (wanted ?? opened?.item)?.id as bigint
  const done = (change: Change) => capitalized(`${kind} ${id(change)} is ${change.done}.`)
  const refuse = (text: string) => refusal.replaceChildren(text)

  function exists(id: bigint): void {
    const link = element(
      'a',
      { href: toFragment({ ...place, record: `${id}` }) },
      `id ${id} exists`,
    )
    refusal.replaceChildren('Nothing was saved: ', link)
  }

  function askAbout({ done, wanted }: Change, now: Stored | undefined) {
    const happened = now ? 'changed' : 'removed'
    const states = {
      'when you opened it': opened?.item,
      'now in the store': now?.item,
      yours: wanted,
    }
    return ask(
      `This ${kind} was ${happened} since you opened it. Nothing was ${done}.`,
      [compare(states)],
      [
        'Keep what is there',
        wanted ? 'Save mine over it' : `Delete ${opened?.item.id}`,
        'Go on editing',
      ],
    )
  }

  /** The members of the form, and those that the description does not name. */
  function readForm(): Item | undefined {
    const values = fields.map(field => [field, field.read()] as const)
    const [wrong] = values.find(([, value]) => value === null) ?? []
    wrong?.focus()
    if (wrong) {
      return undefined
    }
    const edited = Object.fromEntries(values.map(([{ name }, value]) => [name, value]))
    const item = Object.entries({ ...opened?.item, ...edited }).filter(
      ([, value]) => value !== undefined,
    )
    return Object.fromEntries(item) as unknown as Item
  }

  form.onsubmit = async event => {
    event.preventDefault()
    const item = readForm()
    if (!canSave || item === undefined) {
      return
    }
    const send = (read: Stored | undefined) => {
      if (read) {
        return records.replace(item, { ifMatch: read.version })
      }
      const doesPut = opened !== undefined || entity.creation === 'PUT'
      return doesPut ? records.replace(item, { ifNoneMatch: '*' }) : records.create(item)
    }
    save.disabled = true
    await make({ done: 'saved', wanted: item, send })
    save.disabled = false
  }
  remove.onclick = async () => {
    if (opened === undefined) {
      return
    }
    const { id } = opened.item
    const answer = await ask(
      `Delete ${kind} ${id}?`,
      [],
      [`Delete ${id}`, 'Go on editing'],
    )
    if (answer === 'Go on editing') {
      return
    }
    const send = (read: Stored | undefined) =>
      records.remove(id, { ifMatch: read?.version })
    await make({ done: 'deleted', wanted: undefined, send })
  }

  // Escape would drop what was edited.
  form.oninput = () => dialog.setAttribute('closedby', 'none')
  dialog.removeAttribute('closedby')
  dialog.replaceChildren(form)
  dialog.showModal()
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

const made = Symbol('made')

function mayHaveChanged(error: unknown): boolean {
  return (
    (error instanceof RefusedError || error instanceof NoAnswerError) &&
    error.mayHaveChanged
  )
}

function isSame(a: Item | undefined, b: Item | undefined): boolean {
  const names = Object.keys({ ...a, ...b })
  return (
    (a === undefined) === (b === undefined) &&
    names.every(name => a?.[name] === b?.[name])
  )
}
