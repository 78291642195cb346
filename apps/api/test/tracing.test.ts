import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { ExportResultCode } from '@opentelemetry/core'
import { listenLocally } from '@plant-store/harness'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { readConfig } from '../src/config.ts'
import { logFailures, startTracing } from '../src/telemetry/traces.ts'
import { ask, start } from './ask.ts'
import { prepareDatabase } from './database.ts'

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[]
  readonly status: { code?: number }
}

/** The body of an exporter's request, in OTLP. */
interface TraceExport {
  readonly resourceSpans: readonly {
    readonly resource: Pick<Span, 'attributes'>
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[]
  }[]
}

/** The collector that gets OTLP over HTTP. */
async function startCollector() {
  const spans: Span[] = []
  const services = new Set<unknown>()
  const paths = new Set<string | undefined>()
  const server = createServer(async (request, response) => {
    paths.add(request.url)
    // The assertions on the spans show whether it has this form.
    const { resourceSpans } = (await json(request)) as TraceExport
    for (const { resource, scopeSpans } of resourceSpans) {
      services.add(attribute(resource, 'service.name'))
      spans.push(...scopeSpans.flatMap(each => each.spans))
    }
    response.setHeader('content-type', 'application/json').end('{}')
  })
  return {
    spans,
    services,
    paths,
    url: `http://127.0.0.1:${await listenLocally(server)}`,
    [Symbol.dispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function attribute({ attributes }: Pick<Span, 'attributes'>, name: string): unknown {
  const value = attributes.find(({ key }) => key === name)?.value
  return value && Object.values(value)[0]
}

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const callerSpanId = '00f067aa0ba902b7'

test("each request is a span of its caller's trace, with the store below", async () => {
  await using database = await prepareDatabase()
  using collector = await startCollector()
  const loggedTraces: unknown[] = []
  {
    const exporter = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_SERVICE_NAME: 'greenhouse',
    }
    await using program = await start(exporter, { databaseUrl: database.url })
    const body = '{"id": 1, "name": "secret name"}'
    const traceparent = `00-${traceId}-${callerSpanId}-01`
    const headers = { 'if-match': '"0000000000000000"' }
    const answers = [
      await ask(program, 'POST /plants', { headers: { traceparent }, body }),
      await ask(program, 'POST /plants', { body }),
      await ask(program, 'GET /plants/1'),
      await ask(program, 'GET /nowhere'),
      await ask(program, 'GET /plants/1', { headers }),
      await ask(program, 'PUT /plants/1', { headers, body: '{"name":"b"}' }),
      await ask(program, 'DELETE /plants/1', { headers }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([
      200, 400, 200, 404, 412, 412, 412,
    ])
    // The other spans are sent before it ends.
    expect(await program.end('SIGTERM')).toBe(0)
    for (const line of program.log) {
      if (line.msg === 'answered') {
        loggedTraces.push(line.traceId)
      }
    }
  }
  expect([...collector.paths]).toEqual(['/v1/traces'])
  expect([...collector.services]).toEqual(['greenhouse'])
  const requests = collector.spans.filter(({ kind }) => kind === 2)
  expect(requests.map(({ name }) => name).sort()).toEqual([
    'DELETE /plants/:id',
    'GET',
    'GET /plants/:id',
    'GET /plants/:id',
    'POST /plants',
    'POST /plants',
    'PUT /plants/:id',
  ])
  expect(collector.spans).toHaveLength(13)
  expect(loggedTraces).toContain(traceId)
  const requestTraces = requests.map(span => span.traceId)
  expect(loggedTraces.sort()).toEqual(requestTraces.sort())

  const created = requests.find(span => span.traceId === traceId)
  assert(created !== undefined, 'the create is a span of the trace of its caller')
  expect(created).toMatchObject({ name: 'POST /plants', parentSpanId: callerSpanId })
  expect(attribute(created, 'http.route')).toBe('/plants')
  expect(Number(attribute(created, 'http.response.status_code'))).toBe(200)

  const storeSpans = collector.spans.filter(({ kind }) => kind !== 2)
  expect(storeSpans).toContainEqual(
    expect.objectContaining({ name: 'store create', parentSpanId: created.spanId }),
  )
  for (const span of storeSpans) {
    const parent = requests.find(({ spanId }) => spanId === span.parentSpanId)
    expect(span.name, span.name).toMatch(/^store (create|find|replace|remove)$/)
    expect(parent?.traceId, `the parent of ${span.name}`).toBe(span.traceId)
  }
  expect(JSON.stringify(collector.spans)).not.toMatch(/secret|given-by-configuration/)
})

test('a missing collector is one line, costs no request and delays no stop', async () => {
  await using program = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' })
  expect((await fetch(`${program.url}/healthz`)).status).toBe(200)
  const begun = performance.now()
  expect(await program.end('SIGTERM')).toBe(0)
  expect(performance.now() - begun).toBeLessThan(5_000)
  expect(program.warnings()).toMatchObject([
    {
      level: 'warn',
      msg: 'the collector takes no traces',
      reason: expect.stringContaining('ECONNREFUSED'),
    },
  ])
})

test('a collector that fails is one line in the log, and so is its recovery', () => {
  const lines: unknown[] = []
  const write = (line: string) => lines.push(JSON.parse(line))
  const outcomes = [
    { code: ExportResultCode.SUCCESS },
    { code: ExportResultCode.FAILED, error: new Error('Not Found') },
    { code: ExportResultCode.FAILED, error: new Error('Not Found') },
    { code: ExportResultCode.SUCCESS },
    { code: ExportResultCode.SUCCESS },
  ]
  const exporter = logFailures(
    {
      export: (_, done) => done(outcomes.shift() ?? { code: ExportResultCode.SUCCESS }),
      shutdown: async () => {},
    },
    pino({ base: null }, { write }),
  )

  while (outcomes.length > 0) {
    exporter.export([], () => {})
  }

  expect(lines).toMatchObject([
    { msg: 'the collector takes no traces', reason: 'Not Found' },
    { msg: 'the collector takes traces again' },
  ])
})

/** A caller that records its trace, and one that does not. */
const recorded = '01'
const unrecorded = '00'

test.each([
  ['always_on', 1, unrecorded, 1],
  ['always_off', 1, recorded, 0],
  ['traceidratio', 0, recorded, 0],
  ['traceidratio', 1, unrecorded, 1],
  ['parentbased_always_on', 1, unrecorded, 0],
  ['parentbased_always_off', 1, recorded, 1],
  ['parentbased_traceidratio', 0, recorded, 1],
] as const)(
  'the sampler %s (%d) for a caller with the flags %s records %d',
  async (sampler, sampledShare, flags, count) => {
    using collector = await startCollector()
    onTestFinished(() => void vi.unstubAllEnvs())
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url)
    const config = readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }).traces
    {
      await using tracing = startTracing({ ...config, sampler, sampledShare }, pino())
      const traceparent = `00-${traceId}-${callerSpanId}-${flags}`
      const span = tracing.traceRequest({ method: 'GET', headers: { traceparent } })
      span.end({ method: 'GET', route: '/plants', status: 200 })
    }

    expect(collector.spans).toHaveLength(count)
  },
)
