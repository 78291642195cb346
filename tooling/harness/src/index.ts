export { type CommandOptions, type Result, runCommand, type StartedCommand, startCommand } from './command.ts'
export { freePort, takePort } from './ports.ts'
export { type Ending, launch, type Program } from './program.ts'
export {
  type LaunchedServer,
  type LogLine,
  launchServer,
  type Server,
  type ServerOptions,
  StartError,
  serverProgram,
  startServer,
} from './server.ts'
export { temporaryFolder } from './temporary-folder.ts'
export { hasStrace, mayStartTraced, noTracer, type Tracer, trace } from './trace.ts'
export { until } from './until.ts'
