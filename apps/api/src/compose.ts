import { once } from 'node:events'
import { type AddressInfo, createServer as createSocketServer } from 'node:net'
import { Worker } from 'node:worker_threads'
import { hashToken, mintToken, scopes, type TokenRepository } from '@plant-store/access'
import { openStorage, portsOf, type StorageLink } from '@plant-store/persistence'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { HttpThreadData } from './http-thread.ts'

export interface RunningService extends AsyncDisposable {
  /** Where it listens, with the path that stands before every route. */
  readonly url: string
  /** The access token that was made because there was none; it can't be had again. */
  readonly firstToken: string | undefined
}

/** Puts the service together and starts it. Disposing of it goes the other way: it stops listening, drains, closes. */
export async function startService(config: Config, logger: Logger): Promise<RunningService> {
  await using starting = new AsyncDisposableStack()

  const storage = starting.use(
    await openStorage({
      url: config.databaseUrl,
      timeoutMs: config.databaseTimeoutMs,
      readConnectionsMax: config.databasePoolMax,
      queueRowsMax: config.queueRowsMax,
    }),
  )
  const port = await claimPort(config)
  const servers: AsyncDisposable[] = []
  starting.defer(async () => void (await Promise.all(servers.map(server => server[Symbol.asyncDispose]()))))
  if (storage.link === undefined) {
    const { serve } = await import('./serve.ts')
    servers.push(await serve({ ...config, port, httpThreads: 1 }, storage, logger))
  } else {
    // This thread only supervises: it answers a signal at once, however busy the others are.
    while (servers.length < config.httpThreads)
      servers.push(await startHttpThread({ ...config, port }, storage.link()))
  }

  // Last: a token that is made by a start that then fails would never be shown to anybody.
  const firstToken = config.accessTokens.length > 0 ? undefined : await makeFirstToken(storage.tokens)

  const running = starting.move()
  return {
    url: listeningUrl({ ...config, port }),
    firstToken,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** A port that nobody else has. The threads' own listening can't tell: they share the port with whoever would share it. */
async function claimPort({ host, port }: Config): Promise<number> {
  const claim = createSocketServer().listen(port, host)
  await once(claim, 'listening')
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
const youngGenerationMb = 24

/** Answers requests on the same port and the same store in a thread of its own; see http-thread.ts. */
async function startHttpThread(config: Config, link: StorageLink): Promise<AsyncDisposable> {
  const thread = new Worker(new URL('./http-thread.js', import.meta.url), {
    workerData: { config, link } satisfies HttpThreadData,
    transferList: portsOf(link),
    resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMb },
  })
  await once(thread, 'message')
  return {
    async [Symbol.asyncDispose]() {
      const exited = once(thread, 'exit')
      thread.postMessage('stop')
      await exited
    },
  }
}

async function makeFirstToken(tokens: TokenRepository): Promise<string | undefined> {
  if ((await tokens.list()).length > 0) return undefined
  const token = mintToken()
  const outcome = await tokens.insert({ name: 'first', scopes, createdAt: new Date() }, hashToken(token))
  return outcome === 'inserted' ? token : undefined
}
