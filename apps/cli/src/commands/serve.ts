import { Command, Option } from '@commander-js/extra-typings'
import { defaultStoreUrl, type OpeningPlan } from '@plant-store/engine'
import { CommandError } from '../command-error.ts'
import { print } from '../output.ts'

export const serve = new Command('serve')
  .description('Serve the store over HTTP until SIGTERM or SIGINT arrives.')
  .addOption(
    new Option('--host <address>', 'to listen on (by default 127.0.0.1)').env('HOST'),
  )
  .addOption(new Option('--port <port>', 'to listen on (by default 3000)').env('PORT'))
  .addOption(
    new Option(
      '--database <url>',
      `the store, file:PATH or postgres://… (by default ${defaultStoreUrl})`,
    ).env('DATABASE_URL'),
  )
  .option('--check', 'check the settings, the port and the store, and exit')
  .addHelpText(
    'after',
    `
All settings come from the environment, among them:
  BASE_URL       the URL for clients, behind a proxy
  TRUST_PROXY    the proxies whose X-Forwarded-For is trusted
  LOG_LEVEL      fatal, error, warn, info, debug, trace or silent (info)
  LOG_FORMAT     json, pretty (the default on a terminal) or journal

docs/settings.md lists all settings. Requests need an access token: see plant-store token create --help.`,
  )
  .action(async ({ check, host: HOST, port: PORT, database: DATABASE_URL }, command) => {
    // An empty option counts as none, as an empty variable does.
    if (DATABASE_URL && command.getOptionValueSource('database') === 'cli') {
      delete process.env['DATABASE_URL_FILE']
    }
    for (const [name, value] of Object.entries({ HOST, PORT, DATABASE_URL })) {
      if (value) {
        process.env[name] = value
      }
    }
    // Imported here, as no other command needs an HTTP server.
    const api = await import('@plant-store/api/serve')
    if (!check) {
      return api.serve('plant-store')
    }
    const { faults, plan, misspelt } = await api.checkService()
    for (const { variable, setting } of misspelt) {
      process.stderr.write(`${variable} is not a setting: did you mean ${setting}?\n`)
    }
    if (faults.length > 0) {
      throw new AggregateError(faults.map(fault => new CommandError(fault)))
    }
    if (plan !== undefined) {
      await print({}, plan, describePlan(plan))
    }
  })

function describePlan({ store, versionBefore, schemaVersion }: OpeningPlan) {
  if (versionBefore === undefined) {
    return `The settings are fine. A start would create a new store at ${store}.`
  }
  if (versionBefore !== schemaVersion) {
    return `The settings and the store are fine. A start would migrate the store from schema version ${versionBefore} to ${schemaVersion}.`
  }
  return 'The settings and the store are fine.'
}
