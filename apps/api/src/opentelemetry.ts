import {
  context,
  defaultTextMapGetter,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { type DomainError, isDomainError, type PlantStore } from '@plant-store/domain'
import type { RequestTracer } from '@plant-store/http'

/** With retries. A collector that is gone must not keep the service from stopping. */
const exportTimeoutMs = 1_000

export interface Tracing extends AsyncDisposable {
  readonly traceRequest: RequestTracer
  /** The same store, with a span around each operation. */
  traced(store: PlantStore): PlantStore
}

/**
 * Sends traces to where OpenTelemetry's variables (`OTEL_…`) say. The spans are made by hand, because automatic
 * instrumentation does not see bundled ES modules.
 */
export function startTracing(): Tracing {
  const resource = resourceFromAttributes({ 'service.name': 'plant-store' })
  const provider = new TracerProvider({
    resource: resource.merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [
      new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ timeoutMillis: exportTimeoutMs }) }),
    ],
  })
  const propagator = new W3CTraceContextPropagator()
  // Keeps a request's span across its promises.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager())
  const tracer = provider.getTracer('@plant-store/api')

  return {
    traceRequest({ method, headers }) {
      const caller = propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter)
      const attributes = { 'http.request.method': method }
      const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, caller)
      return {
        traceId: span.spanContext().traceId,
        run: handle => context.with(trace.setSpan(caller, span), handle),
        end({ route, status }) {
          if (route !== undefined) span.updateName(`${method} ${route}`).setAttribute('http.route', route)
          span.setAttribute('http.response.status_code', status)
          if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
          span.end()
        },
      }
    },
    traced(store) {
      const around =
        <Arguments extends unknown[], Result>(
          name: string,
          operation: (...given: Arguments) => Promise<Result>,
        ) =>
        (...given: Arguments) =>
          tracer.startActiveSpan(`store ${name}`, async span => {
            try {
              return await operation(...given)
            } catch (error) {
              // A broken rule is the client's fault, not the store's.
              const { code } = error as DomainError
              const isFailure = !isDomainError(error) || code.startsWith('store-')
              if (isFailure) span.setStatus({ code: SpanStatusCode.ERROR })
              span.setAttribute('error.type', code ?? 'unknown')
              throw error
            } finally {
              span.end()
            }
          })
      return {
        create: around('create', store.create),
        find: around('find', store.find),
        list: around('list', store.list),
        replace: around('replace', store.replace),
        remove: around('remove', store.remove),
      }
    },
    async [Symbol.asyncDispose]() {
      // Lost spans are no reason to fail.
      await provider.shutdown().catch(() => {})
    },
  }
}
