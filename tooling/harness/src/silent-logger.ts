function ignore(): void {}

/** A logger for Fastify that writes nothing. */
export const silentLogger = {
  level: 'silent',
  child: () => silentLogger,
  fatal: ignore,
  error: ignore,
  warn: ignore,
  info: ignore,
  debug: ignore,
  trace: ignore,
  silent: ignore,
}
