import { answerOf, byId, element } from './dom.ts'
import type { Item } from './records.ts'
import { toCell } from './values.ts'

const dialog = byId('question', HTMLDialogElement)

/** Asks with one button for each answer. Resolves to the answer, or to the last one if the dialog is left. */
export async function ask<Answer extends string>(
  question: string,
  content: readonly Node[],
  answers: readonly Answer[],
): Promise<Answer> {
  const buttons = answers.map(value => element('button', { value }, value))
  const form = element(
    'form',
    { method: 'dialog' },
    ...content,
    element('footer', {}, ...buttons),
  )
  dialog.replaceChildren(element('h2', { id: 'question-title' }, question), form)
  const given = await answerOf(dialog)
  return answers.find(each => each === given) ?? (answers.at(-1) as Answer)
}

/** Returns a table of the states of a record, with a column for each. */
export function compare(states: Readonly<Record<string, Item | undefined>>): HTMLElement {
  const names = new Set(Object.values(states).flatMap(item => Object.keys(item ?? {})))
  names.delete('id')
  const heads = Object.keys(states).map(state => element('th', { scope: 'col' }, state))
  const head = element('tr', {}, element('td'), ...heads)
  const rows = [...names].map(name => {
    const cells = Object.values(states).map(item =>
      element('td', {}, element('bdi', {}, toCell(item?.[name]))),
    )
    return element('tr', {}, element('th', { scope: 'row' }, name), ...cells)
  })
  return element('table', {}, element('thead', {}, head), element('tbody', {}, ...rows))
}
