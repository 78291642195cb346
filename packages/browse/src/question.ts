import type { Plant } from '@plant-store/client'
import { button, createDialog, element, removeDialog } from './dom.ts'
import { createSign, findDifference, toCell, toExcerpt, toText } from './values.ts'

/** A question, and its two or three answers. */
export interface Question<Answer extends string> {
  readonly heading: string | readonly (Node | string)[]
  readonly content?: readonly Node[]
  /** The buttons, from the left. */
  readonly answers: readonly Answer[]
  /** The answer that loses nothing. It has the focus, and Escape means it. */
  readonly harmless: Answer
  /** The answer that overwrites, deletes or discards. */
  readonly harmful: Answer
}

/** Asks a question in a dialog within its owner. If the owner goes, no answer comes. */
export function ask<Answer extends string>(
  owner: HTMLElement,
  { heading, content = [], answers, harmless, harmful }: Question<Answer>,
): Promise<Answer> {
  return new Promise(resolve => {
    const end = (answer: Answer) => {
      removeDialog(dialog)
      resolve(answer)
    }
    const title = element('h2', { translate: false }, ...[heading].flat())
    const dialog = createDialog(title, () => end(harmless))
    dialog.className = 'question'
    const buttons = answers.map(answer => {
      const choice = button(answer, () => end(answer))
      choice.classList.toggle('danger', answer === harmful)
      choice.autofocus = answer === harmless
      return choice
    })
    dialog.append(title, ...content, element('footer', {}, ...buttons))
    owner.append(dialog)
    dialog.showModal()
  })
}

export const goOn = 'Go on editing'
const discard = 'Discard what I typed'

/** Asks before what was typed is lost. Resolves to whether it may be. */
export async function askToDiscard(owner: HTMLElement, title: string): Promise<boolean> {
  const answer = await ask(owner, {
    heading: `${title} is not saved.`,
    answers: [goOn, discard],
    harmless: goOn,
    harmful: discard,
  })
  return answer === discard
}

/** The states of a plant when two people have changed it. */
export interface States {
  readonly opened: Plant
  /** It is `undefined` if the plant was removed. */
  readonly now: Plant | undefined
  /** It is `undefined` if the plant is to be deleted. */
  readonly mine: Plant | undefined
}

interface Column {
  readonly label: string
  readonly item: Plant | undefined
}

/** Returns a table with a row for each member, and a column for each state. */
export function compare({ opened, now, mine }: States): readonly HTMLElement[] {
  const all: readonly Column[] = [
    { label: 'when you opened it', item: opened },
    { label: 'now in the store', item: now },
    { label: 'yours', item: mine },
  ]
  const columns = all.filter(({ item }) => item !== undefined)
  const heads = columns.map(({ label }) => element('th', { scope: 'col' }, label))
  const head = element('tr', {}, element('td'), ...heads)
  const isShown = (name: keyof Plant) =>
    name !== 'id' && columns.some(({ item }) => item?.[name] !== undefined)
  // Also the members that only a newer page knows.
  const names = Object.keys({ ...opened, ...now, ...mine }) as (keyof Plant)[]
  const rows = names.filter(isShown).map(name => createRow(name, columns))
  const table = element('table', { className: 'states', translate: false })
  table.append(element('thead', {}, head), element('tbody', {}, ...rows))
  return [table, element('p', { className: 'hint' }, '* differs from what you opened')]
}

function createRow(name: keyof Plant, columns: readonly Column[]): HTMLElement {
  const texts = columns.map(({ item }) => toText(item?.[name]))
  const show = createShow(texts)
  const cells = columns.map(({ label, item }, index) => {
    const isChanged = texts[index] !== texts[0]
    const star = isChanged && element('b', {}, createSign(' *', ''))
    const cell = element('td', {}, show(item?.[name], index > 0), star)
    cell.dataset['label'] = label
    return cell
  })
  return element('tr', {}, element('th', { scope: 'row' }, name), ...cells)
}

/** Returns how to show the values of a member: around their difference, if any. */
function createShow([opened, ...changed]: readonly (string | undefined)[]): (
  value: unknown,
  isMarked: boolean,
) => HTMLElement {
  // The first two matter most: what is stored now, and what would overwrite it.
  const [text = '', ...others] = [...changed, opened].map(each => each ?? '')
  const other = others.find(each => each !== text)
  if (other === undefined) {
    return value => toCell(value)
  }
  const difference = findDifference(text, other)
  return (value, isMarked) => toExcerpt(value, difference, isMarked)
}
