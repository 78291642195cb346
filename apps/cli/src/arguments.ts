import { isTokenName } from '@plant-store/access'
import { InvalidArgumentError } from 'commander'
import { type Grant, grants } from './tokens.ts'

export function tokenName(text: string): string {
  if (isTokenName(text)) return text
  throw new InvalidArgumentError('It must be up to 100 characters on one line, without blanks around them.')
}

export function grant(text: string, before: readonly Grant[] = []): readonly Grant[] {
  if (Object.hasOwn(grants, text)) return [...before, text as Grant]
  throw new InvalidArgumentError(`It must be one of ${Object.keys(grants).join(', ')}.`)
}

const unitSeconds = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

export function moment(text: string): Date {
  const [, digits = 'none', unit = 's'] = /^([1-9]\d{0,5})([smhdw])$/.exec(text) ?? []
  const seconds = Number(digits) * unitSeconds[unit as keyof typeof unitSeconds]
  if (Number.isNaN(seconds))
    throw new InvalidArgumentError('It must be a time from now, such as 12h, 90d or 52w.')
  return new Date(Date.now() + seconds * 1000)
}

export function lineLimit(text: string): number {
  const bytes = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (bytes >= 1024 && bytes <= 256 * 1024 * 1024) return bytes
  throw new InvalidArgumentError('It must be a number of bytes from 1024 to 268435456.')
}
