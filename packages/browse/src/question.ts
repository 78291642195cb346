import type { Plant } from '@plant-store/client'
import { findDifference, toExcerpt } from './difference.ts'
import { button, createDialog, element, removeDialog } from './dom.ts'
import { discard, goOn } from './messages.ts'
import { createSign, toCell, toText } from './values.ts'

/** A question, and its two or three answers. */
interface Question<Answer extends string> {
  readonly heading: Node | string
  readonly content?: readonly Node[]
  /** The buttons, from the left. By default the harmless one, then the harmful one. */
  readonly answers?: readonly Answer[]
  /** The answer that loses nothing. It has the focus, and Escape means it. */
  readonly harmless: Answer
  /** The answer that overwrites, deletes or discards. */
  readonly harmful: Answer
}

/** Asks a question in a dialog within its owner. If the owner goes, no answer comes. */
export function ask<Answer extends string>(
  owner: HTMLElement,
  {
    heading,
    content = [],
    harmless,
    harmful,
    answers = [harmless, harmful],
  }: Question<Answer>,
): Promise<Answer> {
  return new Promise(resolve => {
    const end = (answer: Answer) => {
      removeDialog(dialog)
      resolve(answer)
    }
    const title = element('h2', { translate: false }, heading)
    const dialog = createDialog('question', title, () => end(harmless))
    const buttons = answers.map(answer => {
      const className = answer === harmful ? 'danger' : ''
      const choice = button(answer, () => end(answer), className)
      choice.autofocus = answer === harmless
      return choice
    })
    dialog.append(title, ...content, element('footer', {}, ...buttons))
    owner.append(dialog)
    dialog.showModal()
  })
}

/** Asks before what was typed is lost. Resolves to whether it may be. */
export async function askToDiscard(owner: HTMLElement, title: string): Promise<boolean> {
  const answer = await ask(owner, {
    heading: `${title} is not saved.`,
    harmless: goOn,
    harmful: discard,
  })
  return answer === discard
}

/** A state of a plant, with the head of its column. */
type State = readonly [head: string, plant: Plant | undefined]

/**
 * Returns a table with a row for each member, and a column for each state that there is.
 * The first is that which the user has opened.
 */
export function compare(...all: readonly State[]) {
  const states = all.filter(([, plant]) => plant !== undefined)
  const heads = states.map(([head]) => element('th', { scope: 'col' }, head))
  const head = element('tr', {}, element('td'), ...heads)
  // This includes members that only a newer page knows.
  const { id: _, ...members } = Object.assign({}, ...states.map(([, plant]) => plant))
  const names = Object.keys(members) as (keyof Plant)[]
  const isShown = (name: keyof Plant) =>
    states.some(([, plant]) => plant?.[name] !== undefined)
  const rows = names.filter(isShown).map(name => createRow(name, states))
  const table = element('table', { className: 'states', translate: false })
  table.append(element('thead', {}, head), element('tbody', {}, ...rows))
  return [table, element('p', { className: 'hint' }, '* differs from what you opened')]
}

function createRow(name: keyof Plant, states: readonly State[]): HTMLElement {
  const texts = states.map(([, plant]) => toText(plant?.[name]))
  const difference = differenceOf(texts)
  const cells = states.map(([head, plant], index) => {
    const isChanged = texts[index] !== texts[0]
    const star = isChanged && element('b', {}, createSign(' *', ''))
    const value = plant?.[name]
    const shown = difference ? toExcerpt(value, difference, index > 0) : toCell(value)
    const cell = element('td', {}, shown, star)
    cell.dataset['label'] = head
    return cell
  })
  return element('tr', {}, element('th', { scope: 'row' }, name), ...cells)
}

/** Returns where the values of a member differ, `undefined` if nowhere. */
function differenceOf([opened, ...changed]: readonly (string | undefined)[]) {
  // The first two matter most: what is stored now, and what would overwrite it.
  const [text = '', ...others] = [...changed, opened].map(each => each ?? '')
  const other = others.find(each => each !== text)
  return other === undefined ? undefined : findDifference(text, other)
}
