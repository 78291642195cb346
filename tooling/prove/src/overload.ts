import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, toJson } from '@plant-store/contract'
import type { Server } from '@plant-store/harness'
import { temporaryFolder } from '@plant-store/harness'
import { type Circumstances, type Finding, figure, type Part, timeIsUp } from './part.ts'
import { connectClient, defects, startProgram, token } from './program.ts'

export const overloadPart: Part = { name: 'overload', share: 0.14, run: runOverload }

/** What the program may take at its peak; where more is needed than is said here, a bound is missing somewhere. */
const memoryMibMax = 512
/** A client that behaves must be answered within this, whatever others do. */
const healthyAnswerMsMax = 5_000
const recoveryMsMax = 30_000

/** What is done to the program, and for how long at least. Resolves to what came of it in words. */
interface Attack {
  readonly name: string
  run(target: Target): Promise<string>
}

interface Target {
  readonly program: Server
  readonly client: Client
  readonly scale: number
  nextId(): bigint
  /** How many answers the client that behaves has had in this attack so far. */
  healthyAnswers(): number
  /** Words for the table. */
  note(what: string): void
  /** Says that this machine allows less than was meant to be tried. */
  fallShort(what: string): void
}

/** Time limits short enough that what hangs on them is over within the part's time. */
const environment = {
  LOG_LEVEL: 'info',
  HEADERS_TIMEOUT: '8s',
  REQUEST_TIMEOUT: '10s',
  INACTIVITY_TIMEOUT: '5s',
  KEEP_ALIVE_TIMEOUT: '12s',
  // More than is tried: each thread takes its share, and the system spreads connections only about evenly.
  MAX_CONNECTIONS: '16000',
}

/**
 * Does to the program what nobody should, while a client that behaves goes on asking: it must be answered, the memory
 * must stay within its bound, and afterwards everything must be as it was before.
 */
export async function runOverload(circumstances: Circumstances): Promise<Finding> {
  using folder = temporaryFolder()
  const failures: string[] = []
  const skipped: string[] = []
  const told: string[] = []
  const noted: string[] = []
  let peakOfAllMib = 0
  let lost = 0
  let times = 0
  await using program = await startProgram({
    databaseUrl: `file:${join(folder.path, 'plants.db')}`,
    environment,
  })
  const client = await connectClient(program)
  let lastId = 0n
  const nextId = () => ++lastId
  for (let n = 0; n < 20; n++)
    await client.ask('POST', '/plants', { body: toJson({ id: BigInt(-1 - n), name: 'x'.repeat(100_000) }) })
  await fetch(`${program.url}/healthz`).then(answer => answer.arrayBuffer())
  const filesBefore = openFiles(program)

  const kept: bigint[] = []
  for (const attack of attacks) {
    if (timeIsUp(circumstances)) {
      skipped.push(`${attack.name}: the time was up`)
      continue
    }
    if (attack.name.startsWith('slowhttptest') && !hasSlowhttptest()) {
      skipped.push(`${attack.name}: it is not installed`)
      continue
    }
    times++
    const healthy = startHealthyClient(program, nextId)
    const target: Target = {
      program,
      client,
      scale: circumstances.scale,
      nextId,
      healthyAnswers: healthy.answers,
      note: what => noted.push(what),
      fallShort: what => skipped.push(`${attack.name}: ${what}`),
    }
    const peak = watchMemory(program)
    const outcome = await attack.run(target).catch((error: Error) => {
      failures.push(`${attack.name}: ${error.message}`)
      return 'failed'
    })
    const seen = await healthy.stop()
    kept.push(...seen.created)
    const peakMib = peak.stop()
    peakOfAllMib = Math.max(peakOfAllMib, peakMib)
    told.push(
      `${attack.name}: ${outcome}; ${seen.answers} healthy answers, slowest ${Math.round(seen.slowestMs)} ms, peak ${peakMib} MiB`,
    )
    failures.push(...seen.failures.slice(0, 3).map(failure => `${attack.name}: ${failure}`))
    if (peakMib > memoryMibMax) failures.push(`${attack.name}: it took ${peakMib} MiB`)
    if (!program.isRunning()) {
      failures.push(`${attack.name}: the program ended, and printed:\n${program.errors()}`)
      break
    }
    const recovered = await recovers(target, filesBefore).catch((error: Error) => error.message)
    if (recovered !== undefined) failures.push(`${attack.name}: ${recovered}`)
  }
  for (const line of told) console.log(`  ${line}`)
  if (!program.isRunning()) return { tried: `${times} loads`, times, failures, skipped }
  for (const id of kept) {
    const { status } = await client.ask('GET', `/plants/${id}`)
    if (status !== 200) lost++
  }
  if (lost > 0) failures.push(`${lost} plants that were answered with success are not there`)
  failures.push(...defects(program))
  client.close()
  const ended = await program.end('SIGTERM')
  if (ended !== 0) failures.push(`it ended with ${ended}`)
  return {
    tried: [
      `${times} loads that nobody should put on it, with a healthy client beside`,
      ...noted,
      `peak ${peakOfAllMib} MiB`,
      `${figure(kept.length)} writes of the healthy client`,
    ].join('; '),
    times,
    failures,
    lost,
    skipped,
  }
}

const attacks: readonly Attack[] = [
  { name: '10 times the sustainable rate', run: tenTimesTheRate },
  { name: '10,000 idle connections', run: idleConnections },
  { name: 'huge headers', run: target => flood(target, 'huge headers', 431) },
  { name: 'endless bodies', run: target => flood(target, 'endless bodies', 413) },
  { name: 'pipelining', run: pipeline },
  { name: 'requests behind one whose answer is not read', run: pipelineBehindHeld },
  { name: 'clients that never read', run: neverRead },
  { name: 'a list of long names', run: listLongNames },
  { name: 'slow readers of long lists', run: target => readSlowly(target, 150, longList) },
  { name: 'slow readers of the reference page', run: target => readSlowly(target, 2_000, bundle) },
  { name: 'spaces in Authorization', run: spacesInAuthorization },
  { name: 'slowhttptest, slow headers', run: target => slowhttptest(target, ['-H', '-i', '2', '-t', 'GET']) },
  {
    name: 'slowhttptest, slow bodies',
    run: target =>
      slowhttptest(target, ['-B', '-i', '2', '-s', '8192', '-t', 'POST', '-f', 'application/json']),
  },
  {
    name: 'slowhttptest, slow reading',
    run: target =>
      slowhttptest(target, ['-X', '-w', '10', '-y', '20', '-n', '2', '-z', '32', '-k', '3'], '/openapi.json'),
  },
]

const authorized = `host: h\r\nauthorization: Bearer ${token}\r\n`

function createRequest(id: bigint): string {
  const body = toJson({ id, name: 'load' })
  return `POST /plants HTTP/1.1\r\n${authorized}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

/** Connections that are made at once; those that are refused are left out. */
async function openSockets({ program }: Target, count: number): Promise<Socket[]> {
  const { hostname, port } = new URL(program.url)
  const sockets: Socket[] = []
  // The listen queue is as long as it is.
  for (let made = 0; made < count; made += 200) {
    const batch = Array.from({ length: Math.min(200, count - made) }, async () => {
      const socket = connect({ host: hostname, port: Number(port) })
      socket.on('error', () => {})
      await once(socket, 'connect').catch(() => {})
      return socket
    })
    sockets.push(...(await Promise.all(batch)).filter(socket => !socket.destroyed))
  }
  return sockets
}

/** Counts answers by status as they come in. */
function countAnswers(sockets: readonly Socket[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  for (const socket of sockets) {
    let rest = ''
    socket.on('data', (chunk: Buffer) => {
      const text = rest + chunk.toString('latin1')
      for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g))
        counts.set(Number(status), (counts.get(Number(status)) ?? 0) + 1)
      // A status line may be cut in two; one that was counted must not be counted again.
      const last = text.lastIndexOf('HTTP/1.1')
      rest = last >= text.length - 12 && last !== -1 ? text.slice(last) : text.slice(-7)
    })
  }
  return counts
}

const written = (counts: ReadonlyMap<number, number>) =>
  [...counts]
    .sort(([a], [b]) => a - b)
    .map(([status, count]) => `${figure(count)} × ${status}`)
    .join(', ') || 'no answer'

function onlyThese(counts: ReadonlyMap<number, number>, statuses: readonly number[]): void {
  for (const status of counts.keys())
    if (!statuses.includes(status)) throw new Error(`${counts.get(status)} answers of ${status}`)
}

async function tenTimesTheRate(target: Target): Promise<string> {
  const closed = await openSockets(target, 32)
  const sustained = countAnswers(closed)
  for (const socket of closed) {
    socket.write(createRequest(target.nextId()))
    socket.on('data', () => socket.write(createRequest(target.nextId())))
  }
  // A program that has just started is slower.
  await sleep(1_500)
  const before = sustained.get(200) ?? 0
  const measureMs = 1_500
  await sleep(measureMs)
  const perSecond = (((sustained.get(200) ?? 0) - before) / measureMs) * 1_000
  for (const socket of closed) socket.destroy()

  const seconds = Math.max(1, 4 * target.scale)
  const sockets = await openSockets(target, 400)
  const counts = countAnswers(sockets)
  let offered = 0
  const beganAt = performance.now()
  for (;;) {
    const elapsed = (performance.now() - beganAt) / 1_000
    if (elapsed > seconds) break
    const due = Math.floor(elapsed * perSecond * 10) - offered
    const each = Math.ceil(due / sockets.length)
    for (const socket of sockets) {
      if (socket.destroyed || offered >= elapsed * perSecond * 10) continue
      let requests = ''
      for (let n = 0; n < each; n++) requests += createRequest(target.nextId())
      offered += each
      // What the server does not take is kept by us, and must not pile up.
      if (socket.writableLength < 2 ** 20) socket.write(requests)
    }
    await sleep(5)
  }
  await sleep(1_000)
  for (const socket of sockets) socket.destroy()
  onlyThese(counts, [200, 408, 503])
  return `${figure(Math.round(perSecond))} a second kept up, ${figure(Math.round(offered / seconds))} a second offered, ${written(counts)}`
}

/** Each is answered once and then kept open; all of them must still be there, and be answered, after others were. */
async function idleConnections(target: Target): Promise<string> {
  const { program, note, fallShort, healthyAnswers } = target
  const meant = 10_000
  // Each is a file to the one who opens it, and one to the program.
  const room = Math.min(openFilesMax('self'), openFilesMax(program.pid)) - filesBesides
  const wanted = Math.min(meant, room)
  if (wanted < meant)
    fallShort(`only ${figure(wanted)}, as a process may have ${figure(room + filesBesides)} files open here`)
  const before = openFiles(program)
  const sockets = await openSockets(target, wanted)
  const counts = countAnswers(sockets)
  const request = 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'
  const askAll = async () => {
    const due = (counts.get(200) ?? 0) + sockets.length
    for (const socket of sockets) socket.write(request)
    const giveUpAt = performance.now() + 20_000
    while ((counts.get(200) ?? 0) < due && performance.now() < giveUpAt) await sleep(20)
    onlyThese(counts, [200])
    if (counts.get(200) !== due) throw new Error(`${due - (counts.get(200) ?? 0)} of them were not answered`)
  }
  try {
    if (sockets.length < wanted) throw new Error(`${sockets.length} of ${wanted} connections could be made`)
    await askAll()
    const answeredBefore = healthyAnswers()
    await sleep(3_000)
    const answered = healthyAnswers() - answeredBefore
    const held = openFiles(program) - before
    // Others come and go.
    if (held < wanted - 20) throw new Error(`only ${held} of ${wanted} connections were still held`)
    if (answered === 0) throw new Error('nobody else was answered meanwhile')
    await askAll()
    note(`${figure(sockets.length)} of ${figure(meant)} idle connections held`)
    return `${figure(sockets.length)} held at once, each answered before and after; ${answered} healthy answers while they stood idle`
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

/** What a process has open besides connections, and some more. */
const filesBesides = 300

function openFilesMax(pid: number | 'self'): number {
  const [, soft = '0'] = /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8')) ?? []
  return Number(soft)
}

/** Sends a header section or a body that does not end, on many connections, for as long as the server takes it. */
async function flood(
  target: Target,
  what: 'huge headers' | 'endless bodies',
  status: number,
): Promise<string> {
  const sockets = await openSockets(target, 50)
  const counts = countAnswers(sockets)
  const isBody = what === 'endless bodies'
  const head = isBody
    ? `POST /plants HTTP/1.1\r\n${authorized}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`
    : `GET /plants HTTP/1.1\r\n${authorized}`
  const piece = isBody
    ? `4000\r\n${' '.repeat(0x4000)}\r\n`
    : Array.from({ length: 100 }, (_, n) => `x-${n}: ${'y'.repeat(150)}\r\n`).join('')
  let sent = 0
  await Promise.all(
    sockets.map(async socket => {
      const closed = once(socket, 'close').catch(() => {})
      const isOver = () => socket.destroyed || socket.readableEnded || !socket.writable
      socket.write(head)
      for (let n = 0; n < 4_000 && !isOver(); n++) {
        sent += piece.length
        if (!socket.write(piece)) await Promise.race([once(socket, 'drain').catch(() => {}), closed])
      }
      socket.destroy()
    }),
  )
  // Of bodies, more than may be held at once.
  onlyThese(counts, isBody ? [status, 503] : [status])
  if ((counts.get(status) ?? 0) < sockets.length / 2)
    throw new Error(`only ${written(counts)} for ${sockets.length}`)
  return `${figure(Math.round(sent / 2 ** 20))} MiB sent, ${written(counts)}`
}

async function pipeline(target: Target): Promise<string> {
  const sockets = await openSockets(target, 20)
  const counts = countAnswers(sockets)
  const each = Math.ceil(2_000 * target.scale)
  for (const socket of sockets) {
    let requests = ''
    for (let n = 0; n < each; n++) requests += createRequest(target.nextId())
    socket.write(requests)
  }
  const total = () => [...counts.values()].reduce((sum, count) => sum + count, 0)
  const giveUpAt = performance.now() + 60_000
  while (total() < each * sockets.length && performance.now() < giveUpAt) await sleep(50)
  for (const socket of sockets) socket.destroy()
  onlyThese(counts, [200, 503])
  if (total() !== each * sockets.length) throw new Error(`${total()} of ${each * sockets.length} answered`)
  return written(counts)
}

async function neverRead(target: Target): Promise<string> {
  const before = openFiles(target.program)
  const sockets = await openSockets(target, 100)
  const held = () => openFiles(target.program) - before
  const request = `GET /plants?limit=20 HTTP/1.1\r\n${authorized}\r\n`
  for (const socket of sockets) {
    socket.pause()
    socket.write(request.repeat(200))
  }
  const giveUpAt = performance.now() + 40_000
  while (held() < sockets.length && performance.now() < giveUpAt) await sleep(20)
  // The server must cut them off by itself: they never will.
  while (held() > sockets.length / 10 && performance.now() < giveUpAt) await sleep(100)
  const left = held()
  for (const socket of sockets) socket.destroy()
  if (left > sockets.length / 10) throw new Error(`${left} of ${sockets.length} were not cut off`)
  return `${sockets.length} connections of 200 requests for 2 MB each, all cut off but ${Math.max(0, left)}`
}

/** Plants whose names are as long as a body may be, behind all others; the emoji makes each character two bytes in memory. */
const longNames = { count: 130, after: 10n ** 15n }
const longList = `GET /plants?limit=1000&after=${longNames.after} HTTP/1.1\r\n${authorized}\r\n`
const bundle = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: h\r\n\r\n'

async function storeLongNames({ client }: Target): Promise<void> {
  const name = `🌱${'x'.repeat(2 ** 20 - 100)}`
  for (let n = 1n; n <= longNames.count; n++)
    await client.ask('PUT', `/plants/${longNames.after + n}`, { body: toJson({ name }) })
}

/** Page by page to its end, a few clients at once. */
async function listLongNames(target: Target): Promise<string> {
  await storeLongNames(target)
  const { program } = target
  let pages = 0
  const listAll = async () => {
    let plants = 0
    let path: string | undefined = `/plants?limit=1000&after=${longNames.after}`
    while (path !== undefined) {
      const answer: Response = await fetch(`${program.url}${path}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      const text = await answer.text()
      if (answer.status === 503) {
        await sleep(100)
        continue
      }
      if (answer.status !== 200) throw new Error(`a list was answered with ${answer.status}`)
      plants += text.split('"id":').length - 1
      pages++
      path = /<([^>]*)>/.exec(answer.headers.get('link') ?? '')?.[1]
    }
    if (plants !== longNames.count) throw new Error(`${plants} of ${longNames.count} plants were listed`)
  }
  await Promise.all([listAll(), listAll(), listAll(), listAll()])
  return `${longNames.count} names of 1 MiB, listed 4 times at once in ${pages} pages`
}

/** Asks on many connections and takes nothing of the answers for a while. */
async function readSlowly(target: Target, count: number, request: string): Promise<string> {
  const sockets = await openSockets(target, count)
  for (const socket of sockets) {
    socket.pause()
    socket.write(request)
  }
  await sleep(4_000)
  for (const socket of sockets) socket.destroy()
  return `${figure(sockets.length)} connections`
}

async function pipelineBehindHeld(target: Target): Promise<string> {
  await storeLongNames(target)
  const count = 100_000
  const [socket] = await openSockets(target, 1)
  if (socket === undefined) throw new Error('no connection could be made')
  socket.pause()
  socket.write(longList)
  socket.write('GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'.repeat(count))
  await sleep(3_000)
  socket.destroy()
  return `${figure(count)} requests`
}

/** Only bad for an expression that looks for the end of the token from each of them. */
async function spacesInAuthorization(target: Target): Promise<string> {
  const sockets = await openSockets(target, 16)
  const counts = countAnswers(sockets)
  const request = `GET /plants HTTP/1.1\r\nhost: h\r\nauthorization: Bearer a${' '.repeat(16_000)}b\r\n\r\n`
  for (const socket of sockets) {
    socket.on('data', () => socket.write(request))
    socket.write(request)
  }
  await sleep(4_000)
  for (const socket of sockets) socket.destroy()
  onlyThese(counts, [401, 429])
  return written(counts)
}

const hasSlowhttptest = () => spawnSync('slowhttptest', ['-h']).error === undefined

async function slowhttptest(
  { program, scale }: Target,
  mode: readonly string[],
  path = '/plants',
): Promise<string> {
  const seconds = Math.max(5, Math.ceil(15 * scale))
  const child = spawn(
    'slowhttptest',
    [...mode, '-c', '500', '-r', '250', '-l', `${seconds}`, '-p', '3', '-u', `${program.url}${path}`],
    { stdio: ['ignore', 'pipe', 'ignore'], timeout: (seconds + 20) * 1_000 },
  )
  child.stdout.resume()
  await once(child, 'exit')
  return `500 connections for ${seconds} s`
}

/** Asks as anybody would, one request after the other, and expects to be answered. */
function startHealthyClient(program: Server, nextId: () => bigint) {
  let isOver = false
  let answers = 0
  let slowestMs = 0
  const failures: string[] = []
  const created: bigint[] = []
  const work = async () => {
    while (!isOver) {
      const id = nextId()
      for (const [method, path, body] of [
        ['POST', '/plants', toJson({ id, name: 'healthy' })],
        ['GET', `/plants/${id}`, undefined],
      ] as const) {
        const beganAt = performance.now()
        try {
          const answer = await fetch(`${program.url}${path}`, {
            method,
            headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
            ...(body !== undefined && { body }),
            signal: AbortSignal.timeout(healthyAnswerMsMax),
          })
          await answer.arrayBuffer()
          answers++
          if (method === 'POST' && answer.status === 200) created.push(id)
          // More than it can do is told so, and is not the fault of either.
          else if (answer.status === 503) break
          else if (answer.status !== 200)
            failures.push(`a healthy ${method} was answered with ${answer.status}`)
        } catch (error) {
          failures.push(`a healthy ${method} was not answered: ${(error as Error).message}`)
          break
        }
        slowestMs = Math.max(slowestMs, performance.now() - beganAt)
      }
      await sleep(20)
    }
  }
  const working = work()
  return {
    answers: () => answers,
    async stop() {
      isOver = true
      await working
      if (answers === 0) failures.push('a healthy client got no answer at all')
      return { answers, slowestMs, failures, created }
    },
  }
}

function watchMemory({ pid }: Server) {
  let peak = 0
  const look = () => {
    try {
      const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
      peak = Math.max(peak, Number(kib) / 1_024)
    } catch {
      // It is gone.
    }
  }
  const timer = setInterval(look, 50)
  return {
    stop() {
      look()
      clearInterval(timer)
      return Math.round(peak)
    },
  }
}

function openFiles({ pid }: Server): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** Waits until connections are gone and answers are quick again. */
async function recovers(
  { program, client, nextId }: Target,
  filesBefore: number,
): Promise<string | undefined> {
  const giveUpAt = performance.now() + recoveryMsMax
  // Those of clients that behave may still be there.
  while (openFiles(program) > filesBefore + 20) {
    if (performance.now() > giveUpAt)
      return `${openFiles(program) - filesBefore} more files are open than before`
    await sleep(50)
  }
  for (;;) {
    const beganAt = performance.now()
    const { status } = await client.ask('POST', '/plants', { body: toJson({ id: nextId(), name: 'after' }) })
    if (status === 200 && performance.now() - beganAt < 500) return undefined
    if (performance.now() > giveUpAt) return `it is still slow, or answers ${status}`
    await sleep(50)
  }
}
