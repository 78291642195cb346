import type { ServerOptions } from '@plant-store/http/server'

/** The options of a server with the program's limits, and with nothing around it. */
export const serverDefaults = {
  corsOrigins: [],
  trustedProxies: [],
  page: undefined,
  baseUrl: undefined,
  traceRequest: undefined,
  isLeaving: () => false,
  onAnswer() {},
  check: async () => {},
  metrics: async () => '# HELP http_requests_total Requests\n',
  logger: { error() {}, debug() {} },
  limits: {
    bodyBytesMax: 1024 * 1024,
    headerBytesMax: 16 * 1024,
    pageTextBytesMax: 2 * 1024 * 1024,
    heldBytesMax: 48 * 1024 * 1024,
    requestTimeoutMs: 30_000,
    headersTimeoutMs: 10_000,
    keepAliveTimeoutMs: 72_000,
    inactivityTimeoutMs: 60_000,
    batchRequestDrainMs: 4_000,
    connectionsMax: 1_000,
  },
} satisfies Partial<ServerOptions>
