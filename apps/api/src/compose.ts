import { once } from 'node:events'
import { statSync } from 'node:fs'
import { type AddressInfo, createServer as createSocketServer, type Server } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { hashToken, mintToken, scopes, type TokenRepository } from '@plant-store/access'
import {
  openStorage,
  type StoreState,
  storageName,
  storeFiles,
  transferListOf,
} from '@plant-store/persistence'
import type { Config } from './config.ts'
import type { FromHttpThread, HttpThreadData, ToHttpThread } from './http-thread.ts'
import { listen } from './listening.ts'
import type { ProcessLog } from './log.ts'
import { createMetrics, type ThreadFigures, writeMetrics } from './metrics.ts'
import { createStoreLog } from './store-log.ts'
import { version } from './version.ts'

export interface RunningService extends AsyncDisposable {
  /** Where it listens, with the path that stands before every route. */
  readonly url: string
  /** The access token that was made because there never was one; it can't be had again. */
  readonly firstToken: string | undefined
}

/**
 * Puts the service together and starts it. Disposing of it goes the other way: it stops listening, drains, closes.
 *
 * @param showsToken whether the first token can be shown to somebody, and to nobody else; none is made otherwise
 */
export async function startService(
  config: Config,
  log: ProcessLog,
  showsToken: boolean,
): Promise<RunningService> {
  await using starting = new AsyncDisposableStack()

  const own = createMetrics()
  const storeLog = createStoreLog(log.logger, storageName(config.databaseUrl))
  const storage = starting.use(
    await openStorage({
      url: config.databaseUrl,
      timeoutMs: config.databaseTimeoutMs,
      readConnectionsMax: config.databasePoolMax,
      queueRowsMax: config.queueRowsMax,
      onCommit: own.onCommit,
      onStateChange: state => storeLog.note('main', state),
    }).catch(cause => {
      throw new Error(`DATABASE_URL: ${cause.message}`, { cause })
    }),
  )
  const threads: HttpThread[] = []
  /** A store that nobody uses may fail unseen. */
  const checked = () => Promise.race([storage.check().catch(() => {}), figuresTimeout()])
  const metrics = shared(async () => {
    const [figures] = await Promise.all([Promise.all(threads.map(thread => thread.figures())), checked()])
    const storeBytes = sizeOf(storeFiles(config.databaseUrl))
    return writeMetrics([own.read(storage.pending()), ...figures], {
      version,
      failure: storeLog.reason(),
      storeBytes,
    })
  })
  if (config.metricsPort !== undefined) {
    // Loaded when needed: this thread answers no other requests, and does without Fastify.
    const { serveMetrics } = await import('./metrics-port.ts')
    starting.use(await serveMetrics(config, config.metricsPort, metrics))
  }

  await using _claim = await claimStart(config)
  const port = await claimPort(config)
  starting.defer(async () => {
    // All of them, before one tells a client that its connection ends: it connects anew, and would be reset.
    await Promise.all(threads.map(thread => thread.stopListening()))
    await Promise.all(threads.map(thread => thread[Symbol.asyncDispose]()))
  })
  if (storage.share === undefined) {
    const { serve } = await import('./serve.ts')
    const { onAnswer, onConnection } = own
    const signals = { metrics, onAnswer, onConnection }
    starting.use(await serve({ ...config, port, httpThreads: 1 }, storage, log.logger, signals))
  } else {
    // This thread only supervises: it answers a signal at once, however busy the others are.
    const { share } = storage
    const wrongTokenCounts = new SharedArrayBuffer(wrongTokenCountsBytes)
    const starts = Array.from({ length: config.httpThreads }, async (_, thread) => {
      const onStateChange = (state: StoreState) => storeLog.note(thread, state)
      threads.push(
        await startHttpThread(
          { config: { ...config, port }, shared: share(), wrongTokenCounts },
          { metrics, writeLog: log.write, onStateChange },
        ),
      )
    })
    // All of them, before one that failed is told: those that started are to be stopped again.
    await Promise.allSettled(starts)
    await Promise.all(starts)
    // Together: who connects first would meet one of them alone, and stay with it.
    const listening = threads.map(thread => thread.listen())
    await Promise.allSettled(listening)
    await Promise.all(listening)
  }

  // Last: a token that is made by a start that then fails would never be shown to anybody.
  const firstToken =
    showsToken && config.accessTokens.length === 0 ? await makeFirstToken(storage.tokens) : undefined
  if (config.accessTokens.length === 0 && (await storage.tokens.list()).length === 0) {
    log.logger.warn(
      'there is no access token: create one with plant-store token create --name NAME --scope write',
    )
  }

  const running = starting.move()
  return {
    url: listeningUrl({ ...config, port }),
    firstToken,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** For some 8,000 networks to be told apart. */
const wrongTokenCountsBytes = 64 * 1024

/**
 * Keeps other processes from starting on a port until this is disposed of. Between {@link claimPort} and the threads'
 * own listening it is nobody's, and whoever shares it could share theirs. Only on Linux do threads share a port.
 *
 * @throws Error in one line when another process is starting there
 */
async function claimStart({ host, port }: Config): Promise<Server | undefined> {
  if (process.platform !== 'linux' || port === 0) return undefined
  const name = `plant-store is starting on ${host}:${port}`
  // In the abstract namespace: it belongs to the network as ports do, and ends with its process.
  const claim = createSocketServer(socket => socket.destroy()).listen(`\0${name}`)
  await once(claim, 'listening').catch(cause => {
    throw new Error(`PORT can not be listened on: another ${name}`, { cause })
  })
  return claim
}

/** A port that nobody else has. The threads' own listening can't tell: they share the port with whoever would share it. */
async function claimPort({ host, port }: Config): Promise<number> {
  const claim = createSocketServer()
  await listen(claim, host, port, 'PORT')
  const claimed = (claim.address() as AddressInfo).port
  claim.close()
  await once(claim, 'close')
  return claimed
}

function listeningUrl({ host, port, baseUrl }: Config): string {
  const path = baseUrl === undefined ? '' : new URL(baseUrl).pathname.replace(/\/$/, '')
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`
}

/** What requests leave behind is collected in small portions; V8's own choice doubles the memory and gains nothing. */
const youngGenerationMb = 12

// And what becomes old is collected when it has grown by half: by V8's own choice, pages of long texts pile up to several
// times what is in use.
setFlagsFromString('--initial-old-space-size=32')
setFlagsFromString('--heap-growing-percent=50')

/** Who asks while an answer is on its way gets that one. */
function shared<Result>(ask: () => Promise<Result>): () => Promise<Result> {
  let answer: Promise<Result> | undefined
  return () => {
    answer ??= ask().finally(() => {
      answer = undefined
    })
    return answer
  }
}

/** For a thread to say its figures; one that is too busy is counted with its last ones. */
const figuresTimeoutMs = 1_000
const figuresTimeout = () => setTimeout(figuresTimeoutMs, undefined, { ref: false })

function sizeOf(files: readonly string[]): number | undefined {
  if (files.length === 0) return undefined
  return files.reduce((bytes, file) => bytes + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0)
}

interface HttpThread extends AsyncDisposable {
  listen(): Promise<void>
  stopListening(): Promise<void>
  /** One call at a time. */
  figures(): Promise<ThreadFigures | undefined>
}

/** What the threads ask of the process. */
interface ForHttpThreads {
  readonly metrics: () => Promise<string>
  readonly writeLog: (lines: string) => void
  readonly onStateChange: (state: StoreState) => void
}

/** Gets ready to answer requests on the same port and the same store in a thread of its own; see http-thread.ts. */
async function startHttpThread(
  data: HttpThreadData,
  { metrics, writeLog, onStateChange }: ForHttpThreads,
): Promise<HttpThread> {
  const thread = new Worker(new URL('./http-thread.js', import.meta.url), {
    workerData: data,
    transferList: transferListOf(data.shared),
    resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMb },
  })
  const tell = (message: ToHttpThread) => thread.postMessage(message)
  const exited = new Promise<number>(resolve => thread.once('exit', resolve))

  let isListening = false
  let figures: ThreadFigures | undefined
  let asked = Promise.withResolvers<void>()
  thread.on('message', async (message: FromHttpThread) => {
    if (message === 'metrics') tell({ metrics: await metrics() })
    else if (typeof message === 'string') thread.emit(message)
    else if ('log' in message) writeLog(message.log)
    else if ('state' in message) onStateChange(message.state)
    else {
      figures = message.figures
      asked.resolve()
    }
  })
  await once(thread, 'ready')

  return {
    async listen() {
      tell('listen')
      await once(thread, 'listening')
      isListening = true
    },
    async stopListening() {
      if (!isListening) return
      tell('stopListening')
      await Promise.race([once(thread, 'stoppedListening'), exited])
    },
    async figures() {
      asked = Promise.withResolvers()
      tell('figures')
      await Promise.race([asked.promise, figuresTimeout()])
      return figures
    },
    async [Symbol.asyncDispose]() {
      if (!isListening) return void (await thread.terminate())
      tell('stop')
      if ((await exited) !== 0) process.exitCode = 1
    },
  }
}

async function makeFirstToken(tokens: TokenRepository): Promise<string | undefined> {
  if (await tokens.hadAny()) return undefined
  const token = mintToken()
  const outcome = await tokens.insert({ name: 'first', scopes, createdAt: new Date() }, hashToken(token))
  return outcome === 'inserted' ? token : undefined
}
