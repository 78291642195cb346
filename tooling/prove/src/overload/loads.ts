import { toJson } from '@plant-store/http/testing'
import { token } from '../program.ts'

/** A load that nobody should put on a server, on each of some connections. */
export interface Load {
  readonly connections: number
  /** The texts that are sent first, one after another, half a second apart. */
  readonly first?: readonly Sent[]
  /** The text that is sent again and again. */
  readonly again?: Sent
  /**
   * When it is sent again: after this many milliseconds, or as soon as the system takes
   * it. The latter opens another connection for one that the server ends.
   */
  readonly every?: number | 'drain'
  /** How long after the first texts the load goes on. */
  readonly seconds: number
  /** Whether nobody reads the answers. */
  readonly unread?: true
  /** The statuses that answers may have. */
  readonly statuses?: readonly number[]
  /** How many answers there must be if the server closes no connection. */
  readonly answers?: number
  /** Whether the healthy client may not even get a 503 for a read. */
  readonly refusesNoReader?: true
}

/** A text, or what makes one. */
export type Sent = string | (() => string)

let lastId = 0n
/** Returns an id that no plant has. */
export const nextId = () => ++lastId

const authorized = `host: h\r\nauthorization: Bearer ${token}\r\n`
const get = (path: string, fields = 'host: h\r\n') =>
  `GET ${path} HTTP/1.1\r\n${fields}\r\n`
const postWith = (fields: string, path = '/plants') =>
  `POST ${path} HTTP/1.1\r\n${fields}transfer-encoding: chunked\r\n\r\n`
const health = get('/healthz')
const longPage = get('/docs/swagger-ui-bundle.js')
const json = 'content-type: application/json\r\n'
/** It needs no token, because it is refused. */
const post = postWith('host: h\r\n')
const batch = postWith(
  `${authorized}content-type: application/x-ndjson\r\n`,
  '/plants/batch',
)
const numbered = (count: number, value: string) =>
  Array.from({ length: count }, (_, n) => `x-${n}: ${value}\r\n`).join('')

const chunks = (text: string, count = 1) =>
  `${text.length.toString(16)}\r\n${text}\r\n`.repeat(count)

const creates = (count: number) => () =>
  Array.from({ length: count }, () => {
    const body = toJson({ id: nextId(), name: 'load' })
    return `POST /plants HTTP/1.1\r\n${authorized}${json}content-length: ${body.length}\r\n\r\n${body}`
  }).join('')

const longIds = Array.from({ length: 40 }, (_, n) => 10n ** 15n + BigInt(n))
/**
 * Plants with names as long as a body allows, behind all others. The emoji makes each
 * character two bytes in memory.
 */
export const longNames = { ids: longIds, name: `🌱${'x'.repeat(2 ** 20 - 100)}` }
const longPages = longIds.map(id =>
  get(`/plants?limit=1000&after=${id - 1n}`, authorized),
)

const long = 'x'.repeat(400_000)
/** Each repeats a member, which the message of its fault quotes. */
const longRefusedLines = chunks(`{"${long}":1,"${long}":2}\n`, 100)

const batchesOf = (connections: number, body: string): Load => ({
  ...{ connections, first: [batch + body], seconds: 6 },
  statuses: [200, 408, 413, 503],
})
const unread = (connections: number, ...first: readonly string[]): Load => ({
  ...{ connections, first, seconds: 4, unread: true },
})
const slow = (head: string): Load => ({
  ...{ connections: 500, first: [head], again: 'x', every: 1_000, seconds: 12 },
  statuses: [408],
})

export const loads: Readonly<Record<string, Load>> = {
  'lists of long names': {
    ...{ connections: 4, first: [longPages.join('')], seconds: 1 },
    ...{ statuses: [200, 503], answers: 160 },
  },
  '10 times the sustainable rate': {
    ...{ connections: 400, again: creates(60), every: 100, seconds: 4 },
    statuses: [200, 408, 503],
  },
  'idle connections': {
    ...{ connections: 800, first: [health], again: health, every: 3_000, seconds: 4 },
    ...{ statuses: [200], answers: 1_600 },
  },
  // Opening all of them takes longer than a header section may.
  'idle connections after many fields': {
    connections: 9_900,
    first: [get('/healthz', `host: h\r\n${numbered(700, '123456789')}`)],
    ...{ seconds: 6, statuses: [200, 408, 503] },
  },
  'huge headers': {
    ...{ connections: 50, first: [`GET /plants HTTP/1.1\r\n${authorized}`] },
    ...{ again: numbered(100, 'y'.repeat(150)), every: 'drain', seconds: 4 },
    ...{ statuses: [431], answers: 13 },
  },
  'endless bodies': {
    ...{ connections: 50, first: [postWith(authorized + json)] },
    ...{ again: chunks(' '.repeat(0x4000)), every: 'drain', seconds: 4 },
    // 503: more than may be held at once.
    ...{ statuses: [413, 503], answers: 13 },
  },
  pipelining: {
    ...{ connections: 20, first: [creates(2_000)], seconds: 1 },
    ...{ statuses: [200, 503], answers: 40_000 },
  },
  'clients that never read': unread(100, get('/plants?limit=20', authorized).repeat(200)),
  'requests behind one whose answer is not read': unread(
    1,
    `${longPages[0]}`,
    health.repeat(100_000),
  ),
  'slow readers of long lists': unread(150, `${longPages[0]}`),
  // Slow for a regular expression that searches for the token's end from each space.
  'spaces in Authorization': {
    ...{ connections: 16, every: 50, seconds: 4, statuses: [401] },
    again: get('/plants', `host: h\r\nauthorization: Bearer a${' '.repeat(16_000)}b\r\n`),
  },
  'tiny chunks behind answers that are not read': unread(
    100,
    longPage.repeat(6),
    post + chunks('x', 30_000),
  ),
  'tiny requests on many connections': unread(800, health.repeat(5_000)),
  'bodies on many connections': unread(
    6_000,
    longPage.repeat(6),
    post + chunks('x'.repeat(1_000), 60),
  ),
  'batches of tiny chunks': batchesOf(60, chunks('x', 120_000)),
  'batches of long refused lines': batchesOf(12, longRefusedLines),
  // Those of one token hold memory, and must not refuse clients who read little.
  'unfinished lines beside readers': {
    ...{ connections: 40, first: [batch + chunks(' '.repeat(2 ** 20 - 10))], seconds: 4 },
    refusesNoReader: true,
  },
  'endless bodies after a refusal': {
    ...{ connections: 50, first: [post], again: chunks('x', 30_000) },
    ...{ every: 'drain', seconds: 6 },
  },
  'pipelined descriptions': {
    ...{ connections: 50, first: [get('/openapi.json').repeat(5_000)], seconds: 6 },
    statuses: [200],
  },
  'slow headers': slow(`GET /plants HTTP/1.1\r\n${authorized}x: `),
  'slow bodies': slow(
    `POST /plants HTTP/1.1\r\n${authorized}${json}content-length: 99\r\n\r\n`,
  ),
}
