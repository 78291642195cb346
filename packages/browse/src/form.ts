import type { Member } from './description.ts'
import { element } from './dom.ts'
import type { Item } from './records.ts'
import { integerProblem, readInteger } from './values.ts'

/**
 * Returns the field of a member. One that nobody edits keeps its value, which a control may not be able to hold: a
 * `<textarea>` has no CR.
 */
export function createField(member: Member, item: Item | undefined, canEdit: boolean) {
  const { name, description, bounds, isText, isRequired } = member
  const original = item?.[name]
  const id = `field-${name}`
  const start =
    original === undefined
      ? ''
      : typeof original === 'object'
        ? JSON.stringify(original)
        : `${original}`
  const control: HTMLInputElement | HTMLTextAreaElement = isText
    ? element('textarea', { id, rows: 2, spellcheck: false, dir: 'auto' })
    : element('input', {
        id,
        className: 'integer',
        autocomplete: 'off',
        spellcheck: false,
      })
  control.value = start
  const unedited = control.value
  control.readOnly =
    !canEdit || (name === 'id' && item !== undefined) || !(isText || bounds)
  control.autofocus = !control.readOnly
  const present = element('input', {
    type: 'checkbox',
    checked: original !== undefined,
    disabled: !canEdit,
  })
  const problem = element('span', { id: `${id}-problem`, className: 'problem' })
  const label = element('label', { htmlFor: id, title: description }, name)
  control.setAttribute('aria-describedby', problem.id)

  const isUnedited = () => original !== undefined && control.value === unedited
  const say = (text: string, isInvalid: boolean) => {
    problem.textContent = text
    control.setAttribute('aria-invalid', `${isInvalid}`)
  }
  control.addEventListener('input', () => {
    present.checked = true
    const losesCr = start.includes('\r') && !isUnedited()
    say(losesCr ? 'has other line breaks than LF, and is saved with LF' : '', false)
  })
  label.id = `${id}-label`
  present.setAttribute('aria-describedby', label.id)
  const choice = isRequired
    ? []
    : [element('label', { className: 'present' }, present, ' present')]

  return {
    name,
    element: element('div', { className: 'field' }, label, ...choice, control, problem),
    focus: () => control.focus(),
    /** Returns the value, without one `undefined`. If it is not valid the field says what it must be, and this is `null`. */
    read(): unknown {
      if (!isRequired && !present.checked) {
        return undefined
      }
      if (isUnedited() || !(isText || bounds)) {
        return original
      }
      if (bounds === undefined) {
        return control.value
      }
      const integer = readInteger(control.value, bounds)
      if (integer !== undefined) {
        return integer
      }
      say(integerProblem(bounds), true)
      return null
    },
  }
}
