/** The clipboard gets what is stored, and never the signs that stand for it. */

/** Copies a text, also on a page without HTTPS, which has no `navigator.clipboard`. */
export function copyText(text: string): void {
  const onCopy = (event: ClipboardEvent) => put(event, text)
  document.addEventListener('copy', onCopy, { capture: true })
  document.execCommand('copy')
  document.removeEventListener('copy', onCopy, { capture: true })
}

function put(event: ClipboardEvent, text: string) {
  event.clipboardData?.setData('text/plain', text)
  event.preventDefault()
  event.stopImmediatePropagation()
}

document.addEventListener('copy', event => {
  const selection = getSelection()
  const isInField = document.activeElement?.matches('input, textarea')
  if (isInField || !selection?.rangeCount) {
    return
  }
  const selected = selection.getRangeAt(0).cloneContents()
  const signs = selected.querySelectorAll<HTMLElement>('[data-stored]')
  if (signs.length === 0) {
    return
  }
  for (const sign of signs) {
    sign.replaceWith(sign.dataset['stored'] ?? '')
  }
  for (const part of selected.querySelectorAll('td, tr')) {
    part.prepend(part.matches('td') ? '\t' : '\n')
  }
  put(event, selected.textContent.trimStart())
})
