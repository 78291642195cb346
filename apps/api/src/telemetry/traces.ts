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
import {
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { type DomainError, isDomainError } from '@plant-store/domain'
import type { RequestTracer } from '@plant-store/http/server'

type UseCase = (...given: never[]) => Promise<unknown>

/** Includes retries. A missing collector must not delay the shutdown. */
const exportTimeoutMs = 1_000

/**
 * Exports traces as OpenTelemetry's variables (`OTEL_…`) configure. Spans are created by
 * hand, as automatic instrumentation does not see bundled ES modules.
 */
export function startTracing() {
  const resource = resourceFromAttributes({ 'service.name': 'plant-store' })
  const provider = new TracerProvider({
    resource: resource.merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ timeoutMillis: exportTimeoutMs }),
      }),
    ],
  })
  const propagator = new W3CTraceContextPropagator()
  // Keeps a request's span across its promises.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager())
  const tracer = provider.getTracer('@plant-store/api')

  const traceRequest: RequestTracer = ({ method, headers }) => {
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

  return {
    traceRequest,
    /** Returns the use cases of every entity with a span around each. */
    traced<All extends object>(useCases: All): All {
      const entities = Object.entries(useCases).map(([entity, ofEntity]) => {
        const attributes = { 'plant_store.entity': entity }
        const traced = Object.entries<UseCase>({ ...ofEntity }).map(
          ([name, useCase]): [string, UseCase] => [
            name,
            (...given) =>
              tracer.startActiveSpan(`store ${name}`, { attributes }, async span => {
                try {
                  return await useCase(...given)
                } catch (error) {
                  // A broken rule is the client's fault, not the store's.
                  const { code } = error as DomainError
                  const isFailure = !isDomainError(error) || code.startsWith('store-')
                  if (isFailure) {
                    span.setStatus({ code: SpanStatusCode.ERROR })
                  }
                  span.setAttribute('error.type', code ?? 'unknown')
                  throw error
                } finally {
                  span.end()
                }
              }),
          ],
        )
        return [entity, Object.fromEntries(traced)]
      })
      return Object.fromEntries(entities)
    },
    async [Symbol.asyncDispose]() {
      // Losing spans is not a failure.
      await provider.shutdown().catch(() => {})
    },
  }
}
