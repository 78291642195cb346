import { button, byId, element } from './dom.ts'
import type { PlantForm } from './plant-form.ts'

/** The messages in the bar above the table, which stays in view. */

const bar = byId('bar')
const happened = byId('happened')
const refusal = byId('refusal')
const unsaved = byId('unsaved')

/** The answers of somebody whose text is not saved. */
export const goOn = 'Go on editing'
export const discard = 'Discard what I typed'

/** Grows with each message. A translated page has other texts than it was given. */
let messageCount = 0

export function clearMessages(): void {
  tell('')
  refusal.textContent = ''
}

/** Says what has happened. Returns a function that takes these words back. */
export function tell(text: string): () => void {
  happened.textContent = text
  messageCount++
  const count = messageCount
  return () => {
    if (messageCount === count) {
      happened.textContent = ''
    }
  }
}

/** Says what has not happened, and why. With `tryAgain`, a button does it again. */
export function refuse(text: string, tryAgain?: () => void): void {
  refusal.replaceChildren(text)
  if (tryAgain) {
    refusal.append(' ', button('Try again', tryAgain))
  }
}

/**
 * Says that a change has failed after its form was closed. The user decides what becomes
 * of the form, unless it is over.
 */
export function keepUnsaved(form: PlantForm, words: string): void {
  if (form.state === 'over') {
    refuse(words)
    return
  }
  const line = element(
    'p',
    {},
    `${words} `,
    button(goOn, () => {
      line.remove()
      form.show()
    }),
    ' ',
    button(discard, () => {
      line.remove()
      form.discard()
    }),
  )
  unsaved.append(line)
}

export function clearUnsaved(): void {
  unsaved.replaceChildren()
}

// The head of the table sticks below the bar. What gets the focus is scrolled to there.
new ResizeObserver(() => {
  document.documentElement.style.setProperty('--bar', `${bar.offsetHeight}px`)
}).observe(bar)
