import type { Member } from './description.ts'
import { element, uniqueId } from './dom.ts'
import type { Item } from './records.ts'
import { integerProblem, readInteger, toText } from './values.ts'

/** The field of a member in a form. */
export interface Field {
  readonly name: string
  readonly element: HTMLElement
  focus(): void
  /** Returns whether something was typed that closing the form would lose. */
  isEdited(): boolean
  /**
   * Returns the value, which is `undefined` if the member is absent. If the text is not
   * valid, the field says why, and there is no result.
   */
  read(): { readonly value: unknown } | undefined
}

/**
 * Returns the field of a member. A field that nobody edits keeps its value, because a
 * control may be unable to hold it: a `<textarea>` has no CR.
 */
export function createField(
  member: Member,
  item: Item | undefined,
  canEdit: boolean,
): Field {
  const { name, description, bounds, isText, isRequired } = member
  const original = item?.[name]
  const control = createControl(member, toText(original) ?? '')
  control.readOnly = !canEdit || !(isText || bounds)
  control.autofocus = !control.readOnly
  const unedited = control.value
  const presence = element('input', {
    type: 'checkbox',
    checked: original !== undefined,
    disabled: !canEdit,
  })
  const wasPresent = presence.checked

  const label = element('label', { htmlFor: control.id }, name)
  const choice = element('label', { className: 'presence' }, presence, ` has ${name}`)
  const hint = element('p', { id: uniqueId(), className: 'hint' }, description)
  const problem = element('p', { id: uniqueId(), className: 'problem' })
  control.setAttribute('aria-describedby', `${hint.id} ${problem.id}`)
  const head = element('div', {}, label, !isRequired && choice)
  const parts = [head, control, hint, problem]

  const hasNewText = () => control.value !== unedited
  const say = (text: string, isInvalid: boolean) => {
    problem.textContent = text
    control.setAttribute('aria-invalid', `${isInvalid}`)
  }
  const hasCr = typeof original === 'string' && original.includes('\r')
  control.addEventListener('input', () => {
    presence.checked = true
    say('', false)
    if (hasCr && hasNewText()) {
      say('has other line breaks than LF, and is saved with LF', false)
    }
  })

  function read(): { readonly value: unknown } | undefined {
    if (!isRequired && !presence.checked) {
      return { value: undefined }
    }
    if (original !== undefined && !hasNewText()) {
      return { value: original }
    }
    if (bounds === undefined) {
      return { value: control.value }
    }
    const value = readInteger(control.value, bounds)
    if (value !== undefined) {
      return { value }
    }
    say(integerProblem(control.value, bounds), true)
    return undefined
  }

  return {
    name,
    element: element('div', { className: 'field' }, ...parts),
    focus: () => control.focus(),
    isEdited: () => hasNewText() || presence.checked !== wasPresent,
    read,
  }
}

type Control = HTMLInputElement | HTMLTextAreaElement

function createControl({ isText }: Member, value: string): Control {
  const common = { id: uniqueId(), spellcheck: false, translate: false }
  if (!isText) {
    const autocomplete = 'off'
    return element('input', { ...common, autocomplete, className: 'integer', value })
  }
  const control = element('textarea', { ...common, rows: 2, value })
  control.setSelectionRange(0, 0)
  // The direction comes after the value. With the direction set, Chromium looks at the
  // whole text again for each line of a new value.
  control.dir = 'auto'
  return control
}
