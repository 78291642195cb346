/** Returns a new element. Texts become text, never markup. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}

/** Returns the element of `browse.html` with this id. */
export function byId<Type extends HTMLElement>(id: string, type: new () => Type): Type {
  const found = document.getElementById(id)
  if (!(found instanceof type)) {
    throw new Error(`the page has no ${id}`)
  }
  return found
}

/** Opens a dialog. Resolves to the value of the button that closed it, or to `''`. */
export async function answerOf(dialog: HTMLDialogElement): Promise<string> {
  dialog.returnValue = ''
  dialog.showModal()
  await new Promise(resolve => dialog.addEventListener('close', resolve, { once: true }))
  return dialog.returnValue
}
