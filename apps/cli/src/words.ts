// Words for people. They do not come from Intl, whose first call takes as long as loading
// the rest of this program (docs/decisions/0004-command-line.md).

/** Returns a phrase such as `1 plant` or `20,000 plants`. */
export function counted(count: number, what: string): string {
  const ending = count === 1 ? '' : 's'
  return `${grouped(count)} ${what}${ending}`
}

/** Returns the counts of entities such as `3 plants and 1 token`. */
export function countedAll(counts: Readonly<Record<string, number | undefined>>): string {
  const phrases = Object.entries(counts).map(([plural, count]) => {
    if (count === undefined) {
      return `an unknown number of ${plural}`
    }
    return counted(count, plural.slice(0, -1))
  })
  return listed(phrases)
}

/** Returns words such as `a, b and c`. No word contains a comma before a blank. */
export function listed(words: readonly string[], conjunction = 'and'): string {
  const lastComma = /, (?!.*, )/
  return words.join(', ').replace(lastComma, ` ${conjunction} `)
}

/** Returns a number such as `20,000`. */
export function grouped(count: number): string {
  return `${count}`.replaceAll(/\B(?=(\d{3})+$)/g, ',')
}

/** Returns a duration such as `9s`, `1min 30s` or `2h 5min`. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds)
  if (whole < 60) {
    return `${whole}s`
  }
  const minutes = Math.floor(whole / 60)
  if (minutes < 60) {
    return `${minutes}min ${whole % 60}s`
  }
  return `${Math.floor(minutes / 60)}h ${minutes % 60}min`
}

export function rate(count: number, seconds: number): string {
  return `${grouped(Math.round(count / Math.max(seconds, 0.001)))}/s`
}

/** Returns the time to the minute in UTC, such as `2026-01-31 09:05Z`, or `none`. */
export function minute(date: Date | null | undefined, none = '-'): string {
  const text = date?.toISOString().replace(/T(\d\d:\d\d).+/, ' $1Z')
  return text ?? none
}
