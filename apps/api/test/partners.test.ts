import { text } from 'node:stream/consumers'
import { ExportResultCode } from '@opentelemetry/core'
import { DomainError } from '@plant-store/domain'
import { createMemoryStore } from '@plant-store/webhooks/testing'
import { pino } from 'pino'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { readConfig } from '../src/config.ts'
import { openGate } from '../src/http/open-gate.ts'
import { logFailures, startTracing } from '../src/telemetry/traces.ts'
import { startCourier } from '../src/webhooks/start-courier.ts'
import { alone, ask, create, start, token } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { listen } from './listener.ts'
import { makeKey, settingsOf, startPartner } from './partner.ts'

// The services that the server asks: identity providers, collectors and listeners.

/** A span, with its attributes beside its other members. */
type Span = Readonly<Record<string, unknown>>

type Attributes = readonly { readonly key: string; readonly value: object }[]

function valuesOf(attributes: Attributes): Span {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, Object.values(value)[0]]),
  )
}

/** The collector that gets OTLP over HTTP. */
async function startCollector() {
  const spans: Span[] = []
  const services = new Set<unknown>()
  const partner = await startPartner(async (request, response) => {
    // The assertions on the spans show whether it has this form.
    const { resourceSpans } = JSON.parse(await text(request))
    for (const { resource, scopeSpans } of resourceSpans) {
      services.add(`${request.url} of ${valuesOf(resource.attributes)['service.name']}`)
      for (const { attributes, ...span } of scopeSpans[0].spans) {
        spans.push({ ...span, ...valuesOf(attributes) })
      }
    }
    response.setHeader('content-type', 'application/json').end('{}')
  })
  return { ...partner, spans, services }
}

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const callerSpanId = '00f067aa0ba902b7'

const key = await makeKey()
await using starting = new AsyncDisposableStack()
const database = starting.use(await prepareDatabase())
const collector = starting.use(await startCollector())
let fetches = 0
const provider = starting.use(
  await startPartner((_, response) => {
    fetches++
    response.end(JSON.stringify({ keys: [key.jwk] }))
  }),
)
const environment = {
  HTTP_THREADS: '2',
  // The second has the form of a JWT.
  ACCESS_TOKENS: `${token},given.by.the-environment`,
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_SERVICE_NAME: 'greenhouse',
  ...settingsOf(provider.url),
}
const server = starting.use(await start(environment, { databaseUrl: database.url }))
const resources = starting.move()
afterAll(() => resources.disposeAsync())
const linesOf = (subject: string) =>
  server.log.filter(line => 'token' in line && line.token === subject)

test('JWTs are admitted on every thread, and the log names who is known', async () => {
  const flora = await key.sign('flora')
  // Another key under the same id.
  const forger = await makeKey()
  const get = async (token: string) =>
    (await ask(server, 'GET /plants', { token, headers: alone })).status

  const reads = await Promise.all(Array.from({ length: 10 }, () => get(flora)))
  const written = await create(server, 1, await key.sign('reader', ['plants:read']))

  expect(new Set(reads)).toEqual(new Set([200]))
  expect(written.text).toContain('40301')
  expect(await get('given.by.the-environment')).toBe(200)
  expect(await get(await forger.sign('forged'))).toBe(401)
  // Each of the two threads fetches the keys at most once.
  expect(fetches).toBeLessThanOrEqual(2)
  const forgeries = () => server.log.filter(({ reason }) => /signature/.test(`${reason}`))
  await expect.poll(forgeries).toHaveLength(1)
  await expect.poll(() => linesOf('flora')).toHaveLength(10)
  await expect.poll(() => linesOf('reader')).toMatchObject([{ status: 403 }])
  // Anybody can claim any subject in a forged token, so its line names none.
  expect(linesOf('forged')).toEqual([])
})

test('each new plant is delivered once, beside listeners that fail', async () => {
  const { url } = database
  using failing = await listen(url, response => response.writeHead(500).end())
  using removed = await listen(url, response => response.writeHead(410).end())
  using good = await listen(url)
  const headers = { 'content-type': 'application/x-ndjson' }
  const added = [
    await ask(server, 'POST /plants', {
      body: '{"id":9223372036854775807,"name":"🌱"}',
    }),
    await ask(server, 'POST /plants/batch?announce=false', {
      headers,
      body: '{"id":11,"name":"in silence"}\n',
    }),
    await ask(server, 'PUT /plants/12', { body: '{"name":"by PUT"}' }),
    await ask(server, 'PUT /plants/12', { body: '{"name":"changed"}' }),
    await ask(server, 'POST /plants/batch', {
      headers,
      body: '{"id":13,"name":"a"}\n{"id":14,"name":"b"}\n',
    }),
  ]

  const metrics = async () => (await ask(server, 'GET /metrics')).text
  const delivered = `plant_store_deliveries_total{webhook="${good.id}",outcome="received"} 4\n`
  await expect.poll(metrics).toContain(delivered)
  await expect
    .poll(metrics)
    .toMatch(new RegExp(`{webhook="${failing.id}",outcome="failed"} [1-9]`))

  expect(added.map(({ status }) => status)).toEqual([200, 200, 201, 200, 200])
  expect(await metrics()).toContain(
    `plant_store_announcements_waiting{webhook="${failing.id}"} 4\n`,
  )
  expect(good.refused).toEqual([])
  expect(good.received).toEqual([2n ** 63n - 1n, 12n, 13n, 14n])
  expect(removed.received).toHaveLength(1)
  await expect
    .poll(() => [...new Set(server.warnings().map(({ msg }) => msg))].sort())
    .toEqual([
      'a webhook answered 410 and was removed',
      'an announcement failed, and is tried again',
    ])
})

test('a courier that ends by a defect starts again', async () => {
  const { webhooks } = createMemoryStore()
  const claim = vi.spyOn(webhooks.outbox, 'claim')
  claim.mockRejectedValueOnce(new TypeError('a defect'))
  const lines: unknown[] = []
  const logger = pino({}, { write: line => lines.push(JSON.parse(line)) })

  // It uses nothing else of a storage.
  const courier = startCourier({ webhooks } as never, logger, 60_000)
  await expect.poll(() => claim.mock.calls.length).toBeGreaterThan(1)
  await courier.stop()

  expect(lines).toMatchObject([
    {
      err: { message: 'a defect' },
      msg: 'the courier ended by a defect, and starts again',
    },
  ])
})

test("each request is a span of its caller's trace, with the store below", async () => {
  const headers = { traceparent: `00-${traceId}-${callerSpanId}-01` }
  const found = await ask(server, 'GET /plants/12', { headers })
  const absent = await ask(server, 'GET /nowhere')
  expect([found.status, absent.status]).toEqual([200, 404])

  // The spans are sent before it ends.
  expect(await server.end()).toBe(0)

  expect([...collector.services]).toEqual(['/partner/v1/traces of greenhouse'])
  const requests = collector.spans.filter(span => span['kind'] === 2)
  const answered = server.log.filter(({ msg }) => msg === 'answered')
  expect(requests.map(span => span['traceId']).sort()).toEqual(
    answered.map(line => line.traceId).sort(),
  )
  expect(requests.map(span => span['name'])).toContain('GET')
  const [inStore, request] = collector.spans.filter(span => span['traceId'] === traceId)
  expect(request).toMatchObject({
    name: 'GET /plants/:id',
    parentSpanId: callerSpanId,
    'http.route': '/plants/:id',
    'http.response.status_code': 200,
  })
  expect(inStore).toMatchObject({ name: 'store find', parentSpanId: request?.['spanId'] })
  const secrets = /by PUT|changed|given-by-configuration/
  expect(JSON.stringify(collector.spans)).not.toMatch(secrets)
})

test('a failing provider makes only JWTs unavailable, and the log says why', async () => {
  using provider = await startPartner((_, response) => response.writeHead(500).end())
  const logError = vi.fn()
  // The gate uses nothing else of a logger and of the tokens.
  const logger = { error: logError } as never
  const tokens = { find: async () => undefined } as never
  const { signal } = new AbortController()
  const config = readConfig({ ACCESS_TOKENS: token, ...settingsOf(provider.url) })
  const gate = await openGate(config, tokens, { logger, signal })
  const judge = async (token: string) => gate({ token, headers: {} }, 'plants:read')
  const key = await makeKey()

  const verdict = judge(await key.sign('flora'))

  await expect(verdict).rejects.toMatchObject({ code: 'access-unavailable' })
  expect(await judge(token)).toMatchObject({ name: 'ACCESS_TOKENS[0]' })
  expect(logError).toHaveBeenCalledExactlyOnceWith(
    { jwksUrl: provider.url, reason: 'it answered 500' },
    "the identity provider's keys cannot be used",
  )
})

test('a collector that fails is one line in the log, and so is its recovery', () => {
  const lines: unknown[] = []
  const success = { code: ExportResultCode.SUCCESS }
  const failure = { code: ExportResultCode.FAILED, error: new Error('Not Found') }
  const results = [success, failure, failure, success, success]
  const exporter = logFailures(
    {
      export: (_, done) => done(results.shift() ?? success),
      shutdown: async () => {},
    },
    pino({}, { write: line => lines.push(JSON.parse(line)) }),
  )

  while (results.length > 0) {
    exporter.export([], () => {})
  }

  expect(lines).toMatchObject([
    { msg: 'the collector takes no traces', reason: 'Not Found' },
    { msg: 'the collector takes traces again' },
  ])
})

/** Records a request in this process, of a caller whose trace has these flags. */
async function record(
  settings: Readonly<Record<string, string>>,
  flags: string,
  act: (tracing: ReturnType<typeof startTracing>) => unknown = () => {},
): Promise<readonly Span[]> {
  using collector = await startCollector()
  onTestFinished(() => void vi.unstubAllEnvs())
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url)
  {
    await using tracing = startTracing(readConfig(settings).traces, pino())
    const headers = { traceparent: `00-${traceId}-${callerSpanId}-${flags}` }
    const span = tracing.traceRequest({ method: 'GET', headers })
    await span.run(async () => act(tracing))
    span.end({ method: 'GET', route: '/plants', status: 503 })
  }
  return collector.spans
}

/** A caller that records its trace, and one that does not. */
const recorded = '01'
const unrecorded = '00'

test.each([
  ['always_on', '1', unrecorded, 1],
  ['always_off', '1', recorded, 0],
  ['traceidratio', '0', recorded, 0],
  ['parentbased_always_on', '1', unrecorded, 0],
  ['parentbased_always_off', '1', recorded, 1],
  ['parentbased_traceidratio', '0', recorded, 1],
])('the sampler %s (%s) for a caller with the flags %s records %d', async (...row) => {
  const [OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG, flags, count] = row

  const spans = await record({ OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG }, flags)

  expect(spans).toHaveLength(count)
})

test('a span fails with the store, and not by the fault of a client', async () => {
  const spans = await record({}, recorded, async tracing => {
    for (const code of ['store-unavailable', 'plant-not-found'] as const) {
      const find = () => Promise.reject(new DomainError(code, 'on purpose'))
      // The span is around any use case.
      const traced = tracing.traceUseCases({ find } as never)
      await traced.find(1n as never).catch(() => {})
    }
  })

  expect(spans).toMatchObject([
    { status: { code: 2 }, 'error.type': 'store-unavailable' },
    { status: { code: 0 }, 'error.type': 'plant-not-found' },
    { status: { code: 2 }, 'http.route': '/plants' },
  ])
})
