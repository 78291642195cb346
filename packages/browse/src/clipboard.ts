/** The clipboard gets what is stored, and never the signs that stand for it. */

/** The part of the stored text that a sign stands for. */
const textOfSign = new WeakMap<Node, string>()

export function setStoredText(sign: HTMLElement, stored: string): void {
  textOfSign.set(sign, stored)
}

/** Copies a text, also on a page without HTTPS, which has no `navigator.clipboard`. */
export function copyText(text: string): void {
  const onCopy = (event: ClipboardEvent) => put(event, text)
  document.addEventListener('copy', onCopy, { capture: true })
  document.execCommand('copy')
  document.removeEventListener('copy', onCopy, { capture: true })
}

function put(event: ClipboardEvent, text: string): void {
  event.clipboardData?.setData('text/plain', text)
  event.preventDefault()
  event.stopImmediatePropagation()
}

document.addEventListener('copy', event => {
  const selection = getSelection()
  const isInField = document.activeElement?.matches('input, textarea')
  if (isInField || !selection?.rangeCount || selection.isCollapsed) {
    return
  }
  const text = readStored(selection.getRangeAt(0))
  if (text !== undefined) {
    put(event, text)
  }
})

/** Returns the stored text of a selection, or `undefined` if it holds no sign. */
function readStored(range: Range): string | undefined {
  const walker = document.createTreeWalker(range.commonAncestorContainer)
  const parts: string[] = []
  let hasSign = false
  for (let node: Node | null = walker.root; node !== null; node = walker.nextNode()) {
    if (!range.intersectsNode(node)) {
      continue
    }
    const stored = textOfSign.get(node)
    hasSign ||= stored !== undefined
    parts.push(stored ?? partOf(node, range))
  }
  return hasSign ? parts.join('').trimStart() : undefined
}

function partOf(node: Node, range: Range): string {
  if (node instanceof HTMLTableRowElement) {
    return '\n'
  }
  if (node instanceof HTMLTableCellElement) {
    return node.cellIndex === 0 ? '' : '\t'
  }
  const isOfSign = node.parentNode !== null && textOfSign.has(node.parentNode)
  if (!(node instanceof Text) || isOfSign) {
    return ''
  }
  const start = node === range.startContainer ? range.startOffset : 0
  const end = node === range.endContainer ? range.endOffset : node.length
  return node.data.slice(start, end)
}
