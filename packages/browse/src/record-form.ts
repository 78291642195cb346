import { attempt, type Change, type Outcome, participle } from './change.ts'
import type { Entity } from './description.ts'
import { button, createDialog, element, removeDialog } from './dom.ts'
import { createField, type Field } from './field.ts'
import { ask, askToDiscard, compare } from './question.ts'
import type { Item, Records, Stored } from './records.ts'
import { mayChange, toWords } from './session.ts'

/** The record of a form, and what the browser page does for it. */
export interface RecordFormOptions {
  readonly entity: Entity
  readonly records: Records
  /** The record as it was read, `undefined` for a new one. */
  readonly opened: Stored | undefined
  /** Returns the URL of a record. */
  readonly toUrl: (id: bigint) => string
  /**
   * Called when the user has closed the form, which may still wait for an answer.
   * `hasChanged` says that the store no longer has the record as it was read.
   */
  readonly onClose: (hasChanged: boolean) => void
  /** Called when the store has made a change. The form is then over. */
  readonly onDone: (change: Change) => void
  /** Called when a change has failed after the form was closed. */
  readonly onLateFailure: (reason: string) => void
  /** Opens the form of another record over this one. */
  readonly openBeside: (id: bigint) => Promise<void>
}

const goOn = 'Go on editing'
const keep = 'Keep what is there'

/**
 * The form of one record. It shares neither its element nor its state, so that an answer
 * of the store reaches only the form that has asked.
 *
 * - shown: its dialog is open. `leave` asks if something was typed, and then ends it.
 * - hidden: it was closed while a change was under way. A success ends it. A failure
 *   keeps what was typed, until `show` or `discard`.
 * - over: nothing of it is on the browser page.
 */
export class RecordForm {
  readonly #options: RecordFormOptions
  readonly #canSave: boolean
  readonly #fields: readonly Field[]
  readonly #dialog: HTMLDialogElement
  readonly #alert = element('p', { role: 'alert' })
  readonly #progress = element('p', { role: 'status' })
  #state: 'shown' | 'hidden' | 'over' = 'shown'
  /** Whether a change waits for the answer of the store. */
  #isSending = false
  /** The open question whether to discard what was typed. */
  #question: Promise<boolean> | undefined
  /** How users see the record named, such as `Plant 7`. */
  readonly title: string

  constructor(options: RecordFormOptions) {
    const { entity, opened } = options
    const isAllowed = mayChange(entity.name)
    this.#options = options
    const hasOperation = opened ? entity.canSave : entity.creation !== undefined
    this.#canSave = isAllowed && hasOperation
    this.title = opened
      ? capitalized(`${entity.kind} ${opened.item.id}`)
      : `New ${entity.kind}`
    this.#fields = entity.members
      .filter(({ name }) => opened === undefined || name !== 'id')
      .map(member => createField(member, opened?.item, this.#canSave))
    const heading = element('h2', { translate: false }, this.title)
    this.#dialog = createDialog(heading, () => this.#close())
    this.#dialog.classList.add('record')
    this.#dialog.append(this.#createForm(heading))
  }

  show(): void {
    this.#state = 'shown'
    document.body.append(this.#dialog)
    this.#dialog.showModal()
  }

  get isShown(): boolean {
    return this.#state === 'shown'
  }

  get isOver(): boolean {
    return this.#state === 'over'
  }

  /** Whether leaving the browser page now would lose something. */
  get isUnsaved(): boolean {
    return this.#state !== 'over' && (this.#isSending || this.#isEdited())
  }

  /**
   * Closes the form, after a question if something was typed. Resolves to whether it is
   * closed. A form that waits for an answer goes on waiting, hidden.
   */
  async leave(): Promise<boolean> {
    if (this.#isSending) {
      this.#end('hidden')
      return true
    }
    if (this.#isEdited() && !(await this.#asksToDiscard())) {
      return false
    }
    this.#end('over')
    return true
  }

  /** Ends a hidden form. */
  discard(): void {
    this.#state = 'over'
  }

  async #close(): Promise<void> {
    if (await this.leave()) {
      this.#options.onClose(false)
    }
  }

  #isEdited(): boolean {
    return this.#fields.some(field => field.isEdited())
  }

  async #asksToDiscard(): Promise<boolean> {
    this.#question ??= askToDiscard(this.#dialog, this.title)
    const isDiscarded = await this.#question
    this.#question = undefined
    return isDiscarded
  }

  #end(state: 'hidden' | 'over'): void {
    this.#state = state
    removeDialog(this.#dialog)
  }

  #createForm(heading: HTMLElement): HTMLElement {
    const { entity, opened } = this.#options
    const onsubmit = (event: Event) => {
      event.preventDefault()
      this.#save()
    }
    const save = element('button', { className: 'primary change' }, 'Save')
    const close = button('Close', () => this.#close())
    const remove = button('Delete', () => this.#delete(), 'danger change')
    const canDelete = opened !== undefined && entity.canDelete
    const buttons = element(
      'div',
      {},
      this.#canSave && save,
      close,
      this.#progress,
      canDelete && remove,
    )
    const form = element('form', { onsubmit, autocomplete: 'off', noValidate: true })
    for (const type of ['beforeinput', 'click']) {
      form.addEventListener(type, event => this.#holdWhileSending(event))
    }
    const fields = this.#fields.map(field => field.element)
    form.append(heading, ...fields, element('footer', {}, this.#alert, buttons))
    return form
  }

  /** Refuses what is typed while a change is under way, because the form may soon end. */
  #holdWhileSending(event: Event): void {
    const isEdit = event.type === 'beforeinput' || isCheckbox(event.target)
    if (this.#isSending && isEdit) {
      event.preventDefault()
    }
  }

  #save(): void {
    const { entity } = this.#options
    if (!this.#canSave || !mayChange(entity.name) || this.#isSending) {
      return
    }
    const wanted = this.#read()
    if (wanted !== undefined) {
      this.#make({ verb: 'save', id: wanted.id, wanted })
    }
  }

  async #delete(): Promise<void> {
    const { entity, opened } = this.#options
    if (opened === undefined || this.#isSending) {
      return
    }
    const { id } = opened.item
    const answer = await ask(this.#dialog, {
      heading: `Delete ${entity.kind} ${id}?`,
      answers: ['Keep it', `Delete ${id}`],
      harmless: 'Keep it',
      harmful: `Delete ${id}`,
    })
    if (answer !== 'Keep it') {
      this.#make({ verb: 'delete', id, wanted: undefined })
    }
  }

  /** Returns the record, with the members that the description does not name. */
  #read(): Item | undefined {
    const values: Record<string, unknown> = { ...this.#options.opened?.item }
    let isValid = true
    for (const field of this.#fields) {
      const result = field.read()
      if (result === undefined) {
        if (isValid) {
          field.focus()
        }
        isValid = false
      } else if (result.value === undefined) {
        delete values[field.name]
      } else {
        values[field.name] = result.value
      }
    }
    if (!isValid) {
      return undefined
    }
    // The fields are those of the entity, and each has judged its value.
    return values as unknown as Item
  }

  /** Makes a change, until it is made, given up, or the form has to be edited. */
  async #make(change: Change): Promise<void> {
    let base = this.#options.opened
    for (;;) {
      const outcome = await this.#attempt(change, base)
      if (outcome.kind === 'done') {
        return this.#finish(change)
      }
      if (outcome.kind === 'failed') {
        return this.#fail(outcome.reason)
      }
      const { now } = outcome
      if (!(await this.#asksToGoAhead(change, now))) {
        return
      }
      base = now
    }
  }

  async #attempt(change: Change, base: Stored | undefined): Promise<Outcome> {
    this.#alert.replaceChildren()
    this.#progress.textContent = progressOf[change.verb]
    this.#isSending = true
    this.#dialog.setAttribute('aria-busy', 'true')
    const onUncertain = (text: string) => this.#alert.replaceChildren(text)
    const outcome = await attempt(change, base, { ...this.#options, onUncertain })
    this.#isSending = false
    this.#dialog.removeAttribute('aria-busy')
    this.#progress.textContent = ''
    return outcome
  }

  #finish(change: Change): void {
    if (this.#state === 'shown') {
      removeDialog(this.#dialog)
    }
    this.#state = 'over'
    this.#options.onDone(change)
  }

  #fail(reason: string): void {
    this.#alert.replaceChildren(reason)
    if (this.#state !== 'shown') {
      this.#options.onLateFailure(`${this.title}: ${reason}`)
    }
  }

  /** Asks about a conflict. Only what the question shows can be overwritten. */
  async #asksToGoAhead(change: Change, now: Stored | undefined): Promise<boolean> {
    const { opened } = this.#options
    if (opened === undefined) {
      this.#failBecauseTaken(change.id)
      return false
    }
    const event = now ? 'changed' : 'removed'
    const nothing = `Nothing was ${participle(change)}.`
    const heading = `${this.title} was ${event} since you opened it. ${nothing}`
    if (this.#state !== 'shown') {
      this.#alert.replaceChildren(heading)
      this.#options.onLateFailure(heading)
      return false
    }
    const states = { opened: opened.item, now: now?.item, mine: change.wanted }
    const goAhead = change.verb === 'save' ? 'Save mine over it' : `Delete ${change.id}`
    const answer = await ask(this.#dialog, {
      heading,
      content: compare(states),
      answers: [keep, goAhead, goOn],
      harmless: goOn,
      harmful: goAhead,
    })
    if (answer === keep) {
      this.#end('over')
      this.#options.onClose(true)
    }
    return answer === goAhead
  }

  async #openBeside(id: bigint): Promise<void> {
    try {
      await this.#options.openBeside(id)
    } catch (error) {
      this.#fail(toWords(error))
    }
  }

  #failBecauseTaken(id: bigint): void {
    const link = element(
      'a',
      { href: this.#options.toUrl(id), translate: false },
      `id ${id} exists`,
    )
    link.addEventListener('click', event => {
      event.preventDefault()
      this.#openBeside(id)
    })
    this.#fail(`Nothing was saved: id ${id} exists`)
    this.#alert.replaceChildren('Nothing was saved: ', link)
  }
}

const progressOf = { save: 'Saving …', delete: 'Deleting …' } as const

function isCheckbox(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement && target.type === 'checkbox'
}

export const capitalized = (text: string): string =>
  text.charAt(0).toUpperCase() + text.slice(1)
