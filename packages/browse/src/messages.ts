import { button, byId, element } from './dom.ts'
import type { RecordForm } from './record-form.ts'

/** What the bar above the table says. It is in view wherever the rows are scrolled. */

const bar = byId('bar', HTMLElement)
const happened = byId('happened', HTMLElement)
const refusal = byId('refusal', HTMLElement)
const unsaved = byId('unsaved', HTMLElement)

export function clearMessages(): void {
  happened.textContent = ''
  refusal.textContent = ''
}

/** Says what has happened. */
export function tell(text: string): void {
  happened.textContent = text
}

/** Says what has not happened, and why. With `tryAgain`, a button does it again. */
export function refuse(text: string, tryAgain?: () => void): void {
  const again = tryAgain ? [' ', button('Try again', tryAgain)] : []
  refusal.replaceChildren(text, ...again)
}

/** Keeps a form whose change has failed after it was closed, until the user decides. */
export function keepUnsaved(form: RecordForm, words: string): void {
  const line = element(
    'p',
    {},
    `${words} `,
    button('Go on editing', () => {
      line.remove()
      form.show()
    }),
    ' ',
    button('Discard what I typed', () => {
      line.remove()
      form.discard()
    }),
  )
  unsaved.append(line)
}

export function clearUnsaved(): void {
  unsaved.replaceChildren()
}

// What gets the focus is scrolled to below the bar, and the table's head sticks there.
new ResizeObserver(() => {
  document.documentElement.style.setProperty('--bar', `${bar.offsetHeight}px`)
}).observe(bar)
