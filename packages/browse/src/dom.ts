/** Returns a new element. Texts become text, never markup. `false` is no child. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: readonly (Node | string | false)[]
): HTMLElementTagNameMap[Name] {
  const created = Object.assign(document.createElement(name), properties)
  created.append(...children.filter(child => child !== false))
  return created
}

export function byId(id: string): HTMLElement
export function byId<Type extends HTMLElement>(id: string, type: new () => Type): Type
/** Returns the element of `browse.html` with this id. */
export function byId(id: string, type = HTMLElement): HTMLElement {
  const existing = document.getElementById(id)
  if (!(existing instanceof type)) {
    throw new Error(`the page has no ${id}`)
  }
  return existing
}

export function button(
  label: string,
  onclick: () => void,
  className = '',
): HTMLButtonElement {
  return element('button', { type: 'button', onclick, className }, label)
}

let idCount = 0

/** Returns an id that no other element has: several forms can be open. */
export function uniqueId(): string {
  idCount++
  return `element-${idCount}`
}

/**
 * Returns a dialog that Escape does not close, because the browser would drop what was
 * typed. `onEscape` decides.
 */
export function createDialog(
  className: string,
  heading: HTMLElement,
  onEscape: () => void,
): HTMLDialogElement {
  heading.id = uniqueId()
  const dialog = element('dialog', { className })
  dialog.setAttribute('aria-labelledby', heading.id)
  dialog.setAttribute('closedby', 'none')
  // Browsers that know no `closedby` report Escape by this event.
  dialog.addEventListener('cancel', event => {
    event.preventDefault()
    onEscape()
  })
  dialog.addEventListener('keydown', event => {
    // A dialog within this one has its own Escape.
    event.stopPropagation()
    if (event.key === 'Escape' && !event.isComposing) {
      event.preventDefault()
      onEscape()
    }
  })
  return dialog
}

/** Closes a dialog, which gives the focus back, and leaves nothing of it on the page. */
export function removeDialog(dialog: HTMLDialogElement): void {
  dialog.close()
  dialog.remove()
}

/** The keys that press a button or close a dialog. */
const actingKeys = ['Enter', ' ', 'Escape']

let pressedOn: EventTarget | null = null

// A held key acts only where it was pressed. The key that has opened a question would
// otherwise answer it, too.
document.addEventListener(
  'keydown',
  event => {
    if (!event.repeat) {
      pressedOn = event.target
    } else if (actingKeys.includes(event.key) && event.target !== pressedOn) {
      event.preventDefault()
      event.stopPropagation()
    }
  },
  { capture: true },
)
