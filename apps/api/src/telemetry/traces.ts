import {
  context,
  defaultTextMapGetter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { isDomainError, type PlantUseCases } from '@plant-store/domain'
import { messageOf } from '@plant-store/engine'
import type { RequestTracer } from '@plant-store/http/server'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'

/** Includes retries. A missing collector must not delay the shutdown. */
const exportTimeoutMs = 1_000

/**
 * Exports traces as OpenTelemetry's variables (`OTEL_…`) configure. Spans are created by
 * hand, because automatic instrumentation does not see bundled ES modules. The disposal
 * sends the spans that wait.
 */
export function startTracing(config: Config['traces'], logger: Logger) {
  const resource = resourceFromAttributes({ 'service.name': 'plant-store' })
  const exporter = new OTLPTraceExporter({ timeoutMillis: exportTimeoutMs })
  const provider = new TracerProvider({
    resource: resource.merge(detectResources({ detectors: [envDetector] })),
    sampler: createSampler(config),
    spanProcessors: [new BatchSpanProcessor({ exporter: logFailures(exporter, logger) })],
  })
  // Keeps a request's span across its promises.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager())
  const tracer = provider.getTracer('@plant-store/api')
  return {
    traceRequest: createRequestTracer(tracer),
    /** Returns the use cases with a span around each. */
    traceUseCases(useCases: PlantUseCases): PlantUseCases {
      const traced = Object.entries(useCases).map(([name, useCase]) => [
        name,
        traceUseCase(tracer, name, useCase),
      ])
      return Object.fromEntries(traced)
    },
    async [Symbol.asyncDispose]() {
      // A loss of spans is not a failure.
      await provider.shutdown().catch(() => {})
    },
  }
}

function createSampler({ sampler, sampledShare }: Config['traces']): Sampler {
  const shares = { always_on: 1, always_off: 0, traceidratio: sampledShare }
  const kind = sampler.replace('parentbased_', '') as keyof typeof shares
  const root = new TraceIdRatioBasedSampler(shares[kind])
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}

/** Logs when the collector begins to fail, and when it takes spans again. */
export function logFailures(exporter: SpanExporter, logger: Logger): SpanExporter {
  let isFailing = false
  return {
    export(spans, done) {
      exporter.export(spans, result => {
        const hasFailed = result.code !== ExportResultCode.SUCCESS
        if (hasFailed && !isFailing) {
          const reason = result.error && messageOf(result.error)
          logger.warn({ reason }, 'the collector takes no traces')
        }
        if (!hasFailed && isFailing) {
          logger.info('the collector takes traces again')
        }
        isFailing = hasFailed
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
  }
}

function createRequestTracer(tracer: Tracer): RequestTracer {
  const propagator = new W3CTraceContextPropagator()
  return ({ method, headers }) => {
    const caller = propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter)
    const attributes = { 'http.request.method': method }
    const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, caller)
    return {
      traceId: span.spanContext().traceId,
      run: handle => context.with(trace.setSpan(caller, span), handle),
      end({ route, status }) {
        if (route !== undefined) {
          span.updateName(`${method} ${route}`).setAttribute('http.route', route)
        }
        span.setAttribute('http.response.status_code', status)
        if (status >= 500) {
          span.setStatus({ code: SpanStatusCode.ERROR })
        }
        span.end()
      },
    }
  }
}

type UseCase = (...args: never[]) => Promise<unknown>

function traceUseCase(tracer: Tracer, name: string, useCase: UseCase): UseCase {
  const attributes = { 'plant_store.entity': 'plants' }
  return (...args) =>
    tracer.startActiveSpan(`store ${name}`, { attributes }, async span => {
      try {
        return await useCase(...args)
      } catch (error) {
        recordFailure(span, error)
        throw error
      } finally {
        span.end()
      }
    })
}

/** A broken rule is the client's fault, not the store's. */
function recordFailure(span: Span, error: unknown) {
  const code = isDomainError(error) ? error.code : 'unknown'
  if (code === 'unknown' || code.startsWith('store-')) {
    span.setStatus({ code: SpanStatusCode.ERROR })
  }
  span.setAttribute('error.type', code)
}
