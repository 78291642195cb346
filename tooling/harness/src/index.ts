export {
  type CommandOptions,
  commandProgram,
  type Result,
  type StartedCommand,
  startCommand,
} from './command.ts'
export { isInstalled } from './is-installed.ts'
export { freePort, listenLocally } from './ports.ts'
export { launch, type Program } from './program.ts'
export {
  type Command,
  type LaunchedServer,
  type LogLine,
  launchServer,
  memorySettings,
  type Server,
  type ServerOptions,
  serverProgram,
  startServer,
} from './server.ts'
export { temporaryFolder } from './temporary-folder.ts'
export { hasStrace, mayStartTraced, noTracer, trace } from './trace.ts'
export { until } from './until.ts'
