import { token } from '../program.ts'

/**
 * A load that nobody should put on a server, on each of some connections. Of each, its
 * texts are read again, so that creates can have ids of their own.
 */
export interface Load {
  readonly connections: number
  /** The texts that are sent first, half a second apart. */
  readonly first?: string
  readonly second?: string
  /** The text that is sent again and again. */
  readonly again?: string
  /** The time between two of them. */
  readonly everyMs?: number
  /**
   * The text that is sent as soon as the system takes it, on another connection after one
   * that the server ends.
   */
  readonly flood?: string
  /** How long after the first texts the load goes on: 4 unless given. */
  readonly seconds?: number
  /** Whether nobody reads the answers. */
  readonly unread?: true
  /** The statuses that answers may have: none if nobody reads them. */
  readonly statuses?: readonly number[]
  /** How many answers there must be if the server closes no connection. */
  readonly answers?: number
  /** The refusals that the healthy client may get: by default of reads, too. */
  readonly refusals?: readonly string[]
}

let lastId = 0
/** Returns an id that no plant has. */
export const nextId = () => ++lastId

const authorized = `host: h\r\nauthorization: Bearer ${token}\r\n`
const get = (path: string, fields = 'host: h\r\n') =>
  `GET ${path} HTTP/1.1\r\n${fields}\r\n`
const post = (fields: string, path = '/plants') =>
  `POST ${path} HTTP/1.1\r\n${fields}\r\n`
const json = 'content-type: application/json\r\n'
const ndjson = 'content-type: application/x-ndjson\r\n'
const chunked = 'transfer-encoding: chunked\r\n'
const health = get('/healthz')
const longPage = get('/docs/swagger-ui-bundle.js')
/** It has no token. */
const refused = post(`host: h\r\n${chunked}`)
const batch = post(authorized + ndjson + chunked, '/plants/batch')
const numbered = (count: number, value: string) =>
  Array.from({ length: count }, (_, n) => `x-${n}: ${value}\r\n`).join('')

const chunks = (text: string, count = 1) =>
  `${text.length.toString(16)}\r\n${text}\r\n`.repeat(count)

const create = () => {
  const body = `{"id":${nextId()},"name":"load"}`
  return `${post(`${authorized}${json}content-length: ${body.length}\r\n`)}${body}`
}
const creates = (count: number) => Array.from({ length: count }, create).join('')

const shortNames = Array.from({ length: 20 }, (_, n) => ({
  id: BigInt(-1 - n),
  name: 'x'.repeat(100_000),
}))
/**
 * Plants with names as long as a body allows, behind all others. The emoji makes each
 * character two bytes in memory.
 */
const longNames = Array.from({ length: 40 }, (_, n) => ({
  id: 10n ** 15n + BigInt(n),
  name: `🌱${'x'.repeat(2 ** 20 - 100)}`,
}))
/** The plants that the loads find. */
export const storedPlants = [...shortNames, ...longNames]
const longPages = longNames.map(({ id }) =>
  get(`/plants?limit=1000&after=${id - 1n}`, authorized),
)
const [oneLongPage = ''] = longPages

const long = 'x'.repeat(400_000)
/** Each repeats a member, which the message of its fault quotes. */
const longRefusedLines = chunks(`{"${long}":1,"${long}":2}\n`, 100)

const batchesOf = (connections: number, body: string): Load => ({
  connections,
  first: batch + body,
  seconds: 6,
  statuses: [200, 408, 413, 503],
})
const unread = (connections: number, first: string, second = ''): Load => ({
  connections,
  first,
  second,
  unread: true,
})
const slow = (head: string): Load => ({
  connections: 500,
  first: head,
  again: 'x',
  everyMs: 1_000,
  seconds: 12,
  statuses: [408],
})

export const loads: Readonly<Record<string, Load>> = {
  'lists of long names': {
    connections: 4,
    first: longPages.join(''),
    statuses: [200, 503],
    answers: 160,
  },
  '10 times the sustainable rate': {
    connections: 400,
    get again() {
      return creates(60)
    },
    everyMs: 100,
    statuses: [200, 408, 503],
  },
  'idle connections': {
    connections: 800,
    first: health,
    again: health,
    everyMs: 3_000,
    statuses: [200],
    answers: 1_600,
  },
  // Opening all of them takes longer than a header section may.
  'idle connections after many fields': {
    connections: 9_900,
    first: get('/healthz', `host: h\r\n${numbered(700, '123456789')}`),
    seconds: 6,
    statuses: [200, 408, 503],
  },
  'huge headers': {
    connections: 50,
    first: `GET /plants HTTP/1.1\r\n${authorized}`,
    flood: numbered(100, 'y'.repeat(150)),
    statuses: [431],
    answers: 13,
  },
  'endless bodies': {
    connections: 50,
    first: post(authorized + json + chunked),
    flood: chunks(' '.repeat(0x4000)),
    // 503: more than may be held at once.
    statuses: [413, 503],
    answers: 13,
  },
  pipelining: {
    connections: 20,
    get first() {
      return creates(2_000)
    },
    seconds: 1,
    statuses: [200, 503],
    answers: 40_000,
  },
  'clients that never read': unread(100, get('/plants?limit=20', authorized).repeat(200)),
  'requests behind one whose answer is not read': unread(
    1,
    oneLongPage,
    health.repeat(100_000),
  ),
  'slow readers of long lists': unread(150, oneLongPage),
  // Slow for a regular expression that searches for the token's end from each space.
  'spaces in Authorization': {
    connections: 16,
    again: get('/plants', `host: h\r\nauthorization: Bearer a${' '.repeat(16_000)}b\r\n`),
    everyMs: 50,
    statuses: [401],
  },
  'tiny chunks behind answers that are not read': unread(
    100,
    longPage.repeat(6),
    refused + chunks('x', 30_000),
  ),
  'tiny requests on many connections': unread(800, health.repeat(5_000)),
  'bodies on many connections': unread(
    6_000,
    longPage.repeat(6),
    refused + chunks('x'.repeat(1_000), 60),
  ),
  'batches of tiny chunks': batchesOf(60, chunks('x', 120_000)),
  'batches of long refused lines': batchesOf(12, longRefusedLines),
  // They hold memory for one token, and must not refuse clients who read little.
  'unfinished lines beside readers': {
    connections: 40,
    first: batch + chunks(' '.repeat(2 ** 20 - 10)),
    statuses: [408, 503],
    refusals: ['PUT 503'],
  },
  'endless bodies after a refusal': {
    connections: 50,
    first: refused,
    flood: chunks('x', 30_000),
    seconds: 6,
    statuses: [401],
  },
  'pipelined descriptions': {
    connections: 50,
    first: get('/openapi.json').repeat(5_000),
    seconds: 6,
    statuses: [200],
  },
  'slow headers': slow(`GET /plants HTTP/1.1\r\n${authorized}x: `),
  'slow bodies': slow(post(`${authorized}${json}content-length: 99\r\n`)),
}
