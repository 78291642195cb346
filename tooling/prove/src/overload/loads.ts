import { token } from '../program.ts'

/**
 * A load that nobody should put on a server, on each of some connections. A text that is
 * a getter is made again for each, because creates have ids of their own.
 */
export interface Load {
  /** How many it opens: 50 unless given. */
  readonly connections?: number
  /** The text that is sent when all are open. */
  readonly first?: string
  /** The text that is sent half a second later. */
  readonly again?: string
  /**
   * The time after which that is sent once more, and so on: 10 lets the server never wait
   * for bytes. If the load has a first text, another connection that begins with it
   * replaces each that the server ends.
   */
  readonly everyMs?: number
  /** How long the load lasts once all connections are open: 5 s unless given. */
  readonly lastsMs?: number
  /** The statuses that answers may have. Without it, nobody reads the answers. */
  readonly statuses?: number[]
  /** How many answers are due to each connection, unless the server may close it. */
  readonly due?: number
  /** How many long pages the healthy client may wait for an answer: 50 unless given. */
  readonly pagesMax?: number
  /** The refusals that it may get: by default of reads, too. */
  readonly refusals?: string
}

const authorized = `authorization: Bearer ${token}\r\n`
const head = (line: string, fields = authorized) =>
  `${line} HTTP/1.1\r\nhost: h\r\n${fields}\r\n`
const post = (fields: string) =>
  head('POST /plants', `${authorized}content-type: application/json\r\n${fields}`)
const chunked = 'transfer-encoding: chunked\r\n'
const health = head('GET /healthz', '')
const scripts = head('GET /docs/swagger-ui-bundle.js', '').repeat(6)
/** It has no token. */
const refused = head('POST /plants', chunked)
const batch = head(
  'POST /plants/batch',
  `${authorized}content-type: application/x-ndjson\r\n${chunked}`,
)

const chunks = (text: string, count = 1) =>
  `${text.length.toString(16)}\r\n${text}\r\n`.repeat(count)

let lastId = 0
/** Their ids are below those of all other plants. */
const creates = (count: number) =>
  Array.from({ length: count }, () => {
    const body = `{"id":${--lastId},"name":"load"}`
    return post(`content-length: ${body.length}\r\n`) + body
  }).join('')

/** The names of the plants that the loads find, whose ids begin with 1. */
export const storedNames = [
  ...Array<string>(20).fill('x'.repeat(100_000)),
  // These are as long as a body allows. The emoji makes each character two bytes
  // in memory.
  ...Array<string>(40).fill(`🌱${'x'.repeat(2 ** 20 - 100)}`),
]
/** The target of a page that is as long as a page may be. */
export const longTarget = '/plants?limit=1000&after=20'
const longPage = head(`GET ${longTarget}`)

const memberName = 'x'.repeat(400_000)
const batchesOf = (connections: number, body: string): Load => ({
  connections,
  first: batch + body,
  lastsMs: 7_000,
  statuses: [200, 408, 413, 503],
})
const slow = (first: string): Load => ({
  connections: 500,
  first,
  again: 'x',
  everyMs: 1_000,
  lastsMs: 13_000,
  statuses: [408],
})

export const loads: Record<string, Load> = {
  'lists of long names': {
    connections: 4,
    first: longPage.repeat(40),
    statuses: [200, 503],
    due: 40,
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
    due: 4,
  },
  // Opening all of them takes longer than a header section may.
  'idle connections after many fields': {
    connections: 9_900,
    first: head(
      'GET /healthz',
      Array.from({ length: 700 }, (_, n) => `x-${n}: 123456789\r\n`).join(''),
    ),
    lastsMs: 7_000,
    statuses: [200, 408, 503],
  },
  'huge headers': {
    first: `GET /plants HTTP/1.1\r\n${authorized}`,
    again: `x: ${'y'.repeat(150)}\r\n`.repeat(400),
    everyMs: 10,
    statuses: [431],
    // A reset may take an answer with it.
    due: 0.25,
  },
  'endless bodies': {
    first: post(chunked),
    again: chunks(' '.repeat(0x4000), 4),
    everyMs: 10,
    // 503: more than may be held at once.
    statuses: [413, 503],
    due: 0.25,
  },
  pipelining: {
    connections: 20,
    get first() {
      return creates(2_000)
    },
    statuses: [200, 503],
    due: 2_000,
  },
  'clients that never read': {
    connections: 100,
    first: head('GET /plants?limit=20&after=0').repeat(200),
  },
  'requests behind one whose answer is not read': {
    connections: 1,
    first: longPage,
    again: health.repeat(100_000),
  },
  // They ask for 150 pages before it, and one thread may have to read most of them.
  'slow readers of long lists': { connections: 150, first: longPage, pagesMax: 150 },
  // Slow for a regular expression that searches for the token's end from each space.
  'spaces in Authorization': {
    connections: 16,
    again: head('GET /plants', `authorization: Bearer a${' '.repeat(16_000)}b\r\n`),
    everyMs: 50,
    statuses: [401],
  },
  'tiny chunks behind answers that are not read': {
    connections: 100,
    first: scripts,
    again: refused + chunks('x', 30_000),
  },
  'tiny requests on many connections': { connections: 800, first: health.repeat(5_000) },
  'bodies on many connections': {
    connections: 6_000,
    first: scripts,
    again: refused + chunks('x'.repeat(1_000), 60),
  },
  'batches of tiny chunks': batchesOf(60, chunks('x', 120_000)),
  // Each repeats a member, which the message of its fault quotes.
  'batches of long refused lines': batchesOf(
    12,
    chunks(`{"${memberName}":1,"${memberName}":2}\n`, 100),
  ),
  // They hold memory for one token, and must not refuse clients who read little.
  'unfinished lines beside readers': {
    connections: 40,
    first: batch + chunks(' '.repeat(2 ** 20 - 10)),
    statuses: [408, 503],
    refusals: 'PUT 503',
  },
  'endless bodies after a refusal': {
    first: refused,
    again: chunks('x', 30_000),
    everyMs: 10,
    lastsMs: 7_000,
    statuses: [401],
  },
  'pipelined descriptions': {
    first: head('GET /openapi.json', '').repeat(5_000),
    lastsMs: 7_000,
    statuses: [200],
  },
  'slow headers': slow(`GET /plants HTTP/1.1\r\n${authorized}x: `),
  'slow bodies': slow(post('content-length: 99\r\n')),
}
