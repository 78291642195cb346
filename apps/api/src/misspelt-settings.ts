import { settingNames } from './config.ts'

/** Shorter names resemble too many others, as HOST does HOME. */
const lengthMin = 8
const editsMax = 2

/** Returns the variables that are no setting and differ from one in a character or two, each with that setting. */
export function misspeltSettings(
  environment: Readonly<Record<string, string | undefined>>,
): { variable: string; setting: string }[] {
  const names = settingNames()
  const others = Object.keys(environment).filter(name => !names.includes(name))
  return others.flatMap(variable => {
    const setting = names.find(name => name.length >= lengthMin && edits(variable, name) <= editsMax)
    return setting === undefined ? [] : [{ variable, setting }]
  })
}

/** Returns how many characters must be added, left out or replaced (Levenshtein distance). */
function edits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, n) => n)
  for (let i = 1; i <= from.length; i++) {
    const above = row
    row = [i]
    for (let j = 1; j <= to.length; j++) {
      const replaced = Number(above[j - 1]) + Number(from[i - 1] !== to[j - 1])
      row.push(Math.min(replaced, Number(above[j]) + 1, Number(row[j - 1]) + 1))
    }
  }
  return row.at(-1) as number
}
