import { isIP } from 'node:net'
import { isBearerToken } from '@plant-store/access'
import { type JwtAlgorithm, jwtAlgorithms, parseJwksUrl } from '@plant-store/jwt/settings'
import ipaddr from 'ipaddr.js'
import { amount, type Parse, unitMs } from './units.ts'

/** Lets the empty text, the default of some settings, mean that there is no value. */
export function optional<Value>(parse: Parse<Value>): Parse<Value | undefined> {
  return text => (text === '' ? undefined : parse(text))
}

export function oneOf<Word extends string>(...words: readonly Word[]): Parse<Word> {
  return text => {
    const word = words.find(each => each === text)
    if (word === undefined) {
      throw new Error(`must be one of ${words.join(', ')}`)
    }
    return word
  }
}

export function integer(min: number, max: number): Parse<number> {
  return amount({ '': 1 }, min, max, `an integer from ${min} to ${max}`)
}

export function share(text: string): number {
  if (!/^(?:0(?:\.\d+)?|1(?:\.0+)?)$/.test(text)) {
    throw new Error('must be a number from 0 to 1, such as 0.25')
  }
  return Number(text)
}

const timeUnits = { ...unitMs, m: unitMs.min }

const expectedTime = 'a time of at most a day, such as 500ms, 30s, 5min or 1h'

export const duration = amount(timeUnits, 1, unitMs.d, expectedTime)

/** A duration that may be zero. */
export const delay = amount(timeUnits, 0, unitMs.d, expectedTime)

/** A longer time would make the expiry of a token meaningless. */
export const clockSkew = amount(timeUnits, 1, 5 * unitMs.min, 'a time of at most 5min')

/** Returns the address without the brackets that an IPv6 address has in a URL. */
export function host(text: string): string {
  return text.replace(/^\[(.*)\]$/, '$1')
}

export function httpUrl(text: string): string {
  const { href = '' } = URL.parse(text) ?? {}
  if (!/^https?:\/\/[^@/]+\/[^?#]*$/.test(href)) {
    throw new Error('must be an http or https URL without query, fragment or credentials')
  }
  return href
}

/**
 * Returns a URL whose path has only characters with one spelling and without a meaning
 * for the router.
 */
export function plainUrl(text: string): string {
  const url = httpUrl(text)
  if (!/^https?:\/\/[^/*]*[\w\-.~/]*$/.test(url)) {
    throw new Error(
      'must be an http or https URL whose path has only letters, digits and - . _ ~ /',
    )
  }
  return url
}

export function jwksUrl(text: string): string {
  return parseJwksUrl(text).href
}

/** @param expectation what the items must be, for the message */
function listOf<Item extends string>(
  expectation: string,
  isItem: (text: string) => boolean,
) {
  return (text: string): readonly Item[] => {
    const items = text === '' ? [] : text.split(',').map(item => item.trim())
    if (!items.every(isItem)) {
      throw new Error(`must be ${expectation}`)
    }
    // `isItem` has judged each.
    return items as Item[]
  }
}

export const networkList = listOf(
  'addresses or networks separated by commas, such as 127.0.0.1 or 10.0.0.0/8',
  text => isIP(text) !== 0 || isNetwork(text),
)

function isNetwork(text: string) {
  // With a network of all addresses, every client could choose its own.
  const hasAllAddresses = /\/0+$/.test(text)
  const isCidr =
    ipaddr.IPv4.isValidCIDRFourPartDecimal(text) || ipaddr.IPv6.isValidCIDR(text)
  return isCidr && !hasAllAddresses
}

export const originList = listOf(
  'origins separated by commas, such as https://plants.example, http://localhost:8080 or capacitor://localhost, without a path; not null, which any page can have in a frame',
  isOrigin,
)

/**
 * Whether a text has the form in which browsers and apps send an origin, of any scheme.
 * Origins are compared as text.
 */
function isOrigin(text: string) {
  const url = URL.parse(text)
  const isNamed = url !== null && url.host !== '' && !text.includes('*')
  return isNamed && text === `${url.protocol}//${url.host}`
}

/** Nothing slows down a client that guesses tokens. */
const tokenCharsMin = 20

export const tokenList = listOf(
  `tokens separated by commas, each of at least ${tokenCharsMin} letters, digits and - . _ ~ + / = (RFC 6750), such as those of openssl rand -hex 32`,
  text => isBearerToken(text) && text.length >= tokenCharsMin,
)

/**
 * Refuses quotation marks, because some programs keep those of a file of variables. A
 * claim is compared to the letter, so no token would have them.
 */
function isClaim(text: string) {
  return text !== '' && !/[\s"'`]/.test(text)
}

export function issuer(text: string): string {
  if (!isClaim(text)) {
    throw new Error('must be the claim "iss", without quotation marks and white space')
  }
  return text
}

export const audienceList = listOf(
  'audiences separated by commas, without quotation marks and white space',
  isClaim,
)

export const algorithmList = listOf<JwtAlgorithm>(
  `some of ${jwtAlgorithms.join(', ')}, separated by commas`,
  text => jwtAlgorithms.some(name => name === text),
)
