import { element, uniqueId } from './dom.ts'
import { hints } from './plants.ts'
import { integerProblem, readInteger } from './values.ts'

/** The field of a member in a form. */
export interface Field<Value> {
  readonly element: HTMLElement
  setReadOnly(isReadOnly: boolean): void
  /** Returns what is in the field, to compare it with what was in it before. */
  state(): string
  read(): Value
}

type Member = keyof typeof hints

/**
 * Returns the field of the id of a new plant. If what was typed is none, the field says
 * why, and reads as `undefined`.
 */
export function createIdField(): Field<bigint | undefined> {
  const control = element('input', { className: 'integer', autocomplete: 'off' })
  const { say, ...frame } = createFrame('id', control)
  return {
    ...frame,
    read() {
      const value = readInteger(control.value)
      if (value === undefined) {
        say(`The id ${integerProblem(control.value)}.`, true)
        control.focus()
      }
      return value
    },
  }
}

/**
 * Returns the field of a text. If nobody edits it, it keeps its value, because a
 * `<textarea>` cannot hold every text: it has no CR.
 *
 * @param original what the store has, `undefined` if there is none
 */
export function createTextField(
  name: Member,
  isNew: boolean,
  original = '',
): Field<string> {
  const control = element('textarea', { rows: 2, value: original })
  control.setSelectionRange(0, 0)
  // The direction comes after the value. With the direction set, Chromium looks at the
  // whole text again for each line of a new value.
  control.dir = 'auto'
  const { say, ...frame } = createFrame(name, control)
  const unedited = control.value
  control.addEventListener('input', () => {
    if (control.value !== unedited) {
      say(warningOf(control.value, original, isNew), false)
    }
  })
  return {
    ...frame,
    read() {
      if (control.value === unedited) {
        return original
      }
      // A cell that is pasted from a spreadsheet ends in a line break.
      return isNew ? control.value.replace(/\n+$/, '') : control.value
    },
  }
}

/**
 * Returns the field of a text that can be absent: if it is empty. Only if an empty text
 * is stored, it can be kept.
 */
export function createOptionalTextField(
  name: Member,
  isNew: boolean,
  original: string | undefined,
): Field<string | undefined> {
  const field = createTextField(name, isNew, original)
  const keep = element('input', { type: 'checkbox', checked: original === '' })
  if (keep.checked) {
    field.element.append(element('label', { className: 'hint' }, keep, ' “” empty text'))
  }
  return {
    ...field,
    setReadOnly(isReadOnly) {
      field.setReadOnly(isReadOnly)
      keep.disabled = isReadOnly
    },
    state: () => `${field.state()}${keep.checked}`,
    read: () => field.read() || (keep.checked ? '' : undefined),
  }
}

/** Returns what a user may not see or want in an edited text, `''` for nothing. */
function warningOf(text: string, original: string, isNew: boolean) {
  if (original.includes('\r')) {
    return 'The stored text has other line breaks than LF. It is saved with LF.'
  }
  if (text.endsWith('\n')) {
    return `The text ends in a line break, which is ${isNew ? 'not saved' : 'saved'}.`
  }
  if (text.trim() !== text) {
    return 'The text begins or ends with a space, which is saved.'
  }
  return ''
}

/**
 * Returns the parts of a field around its control, and a function that says something.
 */
function createFrame(name: Member, control: HTMLInputElement | HTMLTextAreaElement) {
  const hint = hints[name]
  const note = element('p', { id: uniqueId(), className: 'hint' }, hint)
  Object.assign(control, { id: uniqueId(), spellcheck: false, translate: false })
  control.setAttribute('aria-describedby', note.id)
  /** Says something in place of the hint, `''` for the hint. */
  const say = (text: string, isInvalid: boolean) => {
    note.textContent = text || hint
    note.className = text === '' ? 'hint' : 'problem'
    control.ariaInvalid = `${isInvalid}`
  }
  control.addEventListener('input', () => say('', false))
  const label = element('label', { htmlFor: control.id }, name)
  return {
    element: element('div', { className: 'field' }, label, control, note),
    say,
    setReadOnly: (isReadOnly: boolean) => {
      control.readOnly = isReadOnly
      control.autofocus = !isReadOnly
    },
    state: () => `${control.value}\0`,
  }
}
