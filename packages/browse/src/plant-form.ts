import type { Plant } from '@plant-store/client'
import { attempt, type Change, participle } from './change.ts'
import { copyText } from './clipboard.ts'
import { button, createDialog, element, removeDialog } from './dom.ts'
import {
  createIdField,
  createOptionalTextField,
  createTextField,
  type Field,
} from './field.ts'
import { writeJsonRecord } from './json.ts'
import { goOn, keepUnsaved } from './messages.ts'
import { toFragment } from './place.ts'
import { type Members, type StoredPlant, toTitle } from './plants.ts'
import { ask, askToDiscard, compare } from './question.ts'
import { idBeside } from './rows.ts'
import { mayChange, messageOf } from './session.ts'
import { toCell } from './values.ts'

/** The plant of a form, and what the browser page does for it. */
export interface PlantFormOptions {
  /** The plant as it was read, `undefined` for a new one. */
  readonly opened: StoredPlant | undefined
  /**
   * Called when the user has closed the form, which may still wait for an answer.
   * `hasChanged` says that the store no longer has the plant as it was read.
   */
  readonly onClose: (hasChanged: boolean) => void
  /** Called when the store has made a change. The form is then over. */
  readonly onDone: (change: Change) => void
  /** Opens the form of another plant over this one. */
  readonly openBeside: (id: bigint) => Promise<void>
  /** Called when the user wants to see another plant in place of this one. */
  readonly onStep: (id: bigint) => void
}

const keep = 'Keep what is there'

/**
 * The form of one plant. It shares neither its element nor its state, so that an answer
 * of the store reaches only the form that has asked.
 *
 * - shown: its dialog is open. `leave` asks if something was typed, and then ends it.
 * - hidden: it was closed while a change was under way. A success ends it. A failure
 *   keeps what was typed, until `show` or `discard`.
 * - over: nothing of it is on the browser page.
 */
export class PlantForm {
  readonly #options: PlantFormOptions
  readonly #canSave = mayChange()
  readonly #fields: ReturnType<typeof createFields>
  readonly #dialog: HTMLDialogElement
  readonly #alert = element('p', { role: 'alert', tabIndex: 0 })
  readonly #progress = element('p', { role: 'status' })
  state: 'shown' | 'hidden' | 'over' = 'shown'
  /** The plant as the store had it when it was read, or saved from here. */
  #base: StoredPlant | undefined
  /** The contents of the fields when they were new. */
  readonly #untouched: string
  /** Whether a change waits for the answer of the store. */
  #isSending = false
  /** The open question whether to discard what was typed. */
  #question: Promise<boolean> | undefined
  /** How users see the plant named, such as `Plant 7`. */
  readonly title: string

  constructor(options: PlantFormOptions) {
    const { opened } = options
    this.#options = options
    this.#base = opened
    this.title = toTitle(opened?.item.id)
    this.#fields = createFields(opened?.item)
    this.#untouched = this.#typedNow()
    this.#setReadOnly(!this.#canSave)
    const label = opened !== undefined && toLabel(opened.item)
    const heading = element('h2', { translate: false }, this.title, ' ', label)
    this.#dialog = createDialog('record', heading, () => this.#close())
    this.#dialog.append(this.#createForm(heading))
    this.#dialog.addEventListener('keydown', event => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        this.#save()
      }
    })
  }

  show(): void {
    this.state = 'shown'
    document.body.append(this.#dialog)
    this.#dialog.showModal()
  }

  /** Whether leaving the browser page now would lose something. */
  get isUnsaved(): boolean {
    return this.state !== 'over' && (this.#isSending || this.#isEdited())
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
    if (this.#isEdited()) {
      this.#question ??= askToDiscard(this.#dialog, this.title)
      const isDiscarded = await this.#question
      this.#question = undefined
      if (!isDiscarded) {
        return false
      }
    }
    this.#end('over')
    return true
  }

  /** Ends the form, whatever was typed. */
  discard(): void {
    this.#end('over')
  }

  async #close() {
    if (await this.leave()) {
      this.#options.onClose(this.#base !== this.#options.opened)
    }
  }

  get #allFields() {
    return Object.values(this.#fields).filter(field => field !== undefined)
  }

  #isEdited() {
    return this.#typedNow() !== this.#untouched
  }

  #setReadOnly(isReadOnly: boolean) {
    for (const field of this.#allFields) {
      field.setReadOnly(isReadOnly)
    }
  }

  #end(state: 'hidden' | 'over') {
    this.state = state
    removeDialog(this.#dialog)
  }

  #createForm(heading: HTMLElement): HTMLElement {
    const { opened } = this.#options
    const onsubmit = (event: Event) => {
      event.preventDefault()
      this.#save()
    }
    const save = element('button', { className: 'primary' }, 'Save')
    const remove = button('Delete', () => this.#delete(), 'danger')
    const buttons = element(
      'div',
      {},
      this.#canSave && save,
      button('Close', () => this.#close()),
      this.#progress,
      this.#canSave && opened !== undefined && remove,
    )
    return element(
      'form',
      { onsubmit, autocomplete: 'off', noValidate: true },
      heading,
      opened !== undefined && this.#createTools(opened),
      ...this.#allFields.map(field => field.element),
      element('footer', {}, this.#alert, buttons),
    )
  }

  /** Returns the buttons that copy parts of the plant, and go to the ones beside it. */
  #createTools({ item }: StoredPlant): HTMLElement {
    const parts = {
      id: `${item.id}`,
      link: `${location.origin}${location.pathname}${toLink(item.id)}`,
      JSON: writeJsonRecord(item),
    }
    const copies = Object.entries(parts).map(([name, text]) =>
      button(`Copy ${name}`, () => {
        copyText(text)
        this.#progress.textContent = `The ${name} is copied.`
      }),
    )
    const steps = (['Previous', 'Next'] as const).map(side =>
      button(`${side} plant`, () => {
        const id = idBeside(item.id, side)
        if (id !== undefined) {
          return this.#options.onStep(id)
        }
        this.#progress.textContent = `No ${side.toLowerCase()} plant on this page of the list.`
      }),
    )
    return element('div', { className: 'tools' }, ...copies, ...steps)
  }

  #save() {
    if (!this.#canSave || this.#isSending) {
      return
    }
    const wanted = this.#read()
    if (wanted !== undefined) {
      this.#make({ id: wanted.id, wanted })
    }
  }

  async #delete() {
    if (this.#base === undefined || this.#isSending) {
      return
    }
    const { item } = this.#base
    const { id } = item
    const answer = await ask(this.#dialog, {
      heading: element('span', {}, 'Delete ', toLabel(item), ` (${id})?`),
      harmless: 'Keep it',
      harmful: `Delete ${id}`,
    })
    if (answer !== 'Keep it') {
      this.#make({ id, wanted: undefined })
    }
  }

  /**
   * Returns the plant as it was typed, with the members that only a newer page knows, or
   * `undefined` if its id is none.
   */
  #read(): Plant | undefined {
    const { id: idField, name, tag } = this.#fields
    const base = this.#base?.item
    const id = base ? base.id : idField?.read()
    if (id === undefined) {
      return undefined
    }
    const typed: Members<unknown> = { id, name: name.read(), tag: tag.read() }
    // The store judges its texts.
    return { ...base, ...typed } as Plant
  }

  #typedNow() {
    return this.#allFields.map(field => field.state()).join('')
  }

  /** Makes a change, until it is made, given up, or the form has to be edited. */
  async #make(change: Change) {
    let base = this.#base
    try {
      for (;;) {
        const typed = this.#typedNow()
        const { isDone, now } = await this.#attempt(change, base)
        if (isDone) {
          return this.#finish(change, now, this.#typedNow() !== typed)
        }
        if (!(await this.#asksToGoAhead(change, now))) {
          return
        }
        base = now
      }
    } catch (error) {
      this.#fail(messageOf(error))
    }
  }

  async #attempt(change: Change, base: StoredPlant | undefined) {
    this.#alert.replaceChildren()
    this.#progress.textContent = change.wanted ? 'Saving …' : 'Deleting …'
    this.#isSending = true
    this.#setReadOnly(true)
    this.#dialog.ariaBusy = 'true'
    try {
      return await attempt(change, base, text => this.#alert.replaceChildren(text))
    } finally {
      this.#isSending = false
      this.#setReadOnly(false)
      this.#dialog.ariaBusy = null
      this.#progress.textContent = ''
    }
  }

  /**
   * Ends the form, or goes on if something was typed while the change was sent. A page
   * cannot hold back all that a phone's keyboard or an extension writes.
   */
  #finish(change: Change, stored: StoredPlant | undefined, hasMore: boolean) {
    if (hasMore && stored !== undefined) {
      this.#base = stored
      this.#fields.id?.setReadOnly(true)
      this.#fail('Saved without what was typed meanwhile, which is still here.')
      return
    }
    this.#end('over')
    this.#options.onDone(change)
  }

  #fail(reason: string, lateReason = `${this.title}: ${reason}`) {
    this.#alert.replaceChildren(reason)
    if (this.state !== 'shown') {
      keepUnsaved(this, lateReason)
    }
  }

  /** Asks about a conflict. Only what the question shows can be overwritten. */
  async #asksToGoAhead(change: Change, now: StoredPlant | undefined) {
    const opened = this.#base
    if (opened === undefined) {
      this.#failBecauseTaken(change.id)
      return false
    }
    const event = now ? 'changed' : 'removed'
    const nothing = `Nothing was ${participle(change)}.`
    const heading = `${this.title} was ${event} since you opened it. ${nothing}`
    if (this.state !== 'shown') {
      this.#fail(heading, heading)
      return false
    }
    const goAhead = change.wanted ? 'Save mine over it' : `Delete ${change.id}`
    const answer = await ask(this.#dialog, {
      heading,
      content: compare(
        ['when you opened it', opened.item],
        ['now in the store', now?.item],
        ['yours', change.wanted],
      ),
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

  #failBecauseTaken(id: bigint) {
    const link = element('a', { href: toLink(id), translate: false }, `id ${id} exists`)
    link.onclick = event => {
      event.preventDefault()
      this.#options.openBeside(id).catch(error => this.#fail(messageOf(error)))
    }
    const nothing = 'Nothing was saved: '
    this.#fail(`${nothing}id ${id} exists`)
    this.#alert.replaceChildren(nothing, link)
  }
}

/** Returns the fields of a form. The id of a plant that exists cannot be changed. */
function createFields(plant: Plant | undefined) {
  const isNew = plant === undefined
  return {
    id: isNew ? createIdField() : undefined,
    name: createTextField('name', isNew, plant?.name),
    tag: createOptionalTextField('tag', isNew, plant?.tag),
  } satisfies Members<Field<unknown> | undefined>
}

/** Returns the start of a plant's name. */
function toLabel({ name }: Plant): HTMLElement {
  return toCell(name, 60)
}

/** Returns the fragment of a plant, without the list that it was opened from. */
function toLink(id: bigint) {
  return toFragment({ plant: `${id}`, parameters: new Map() })
}
