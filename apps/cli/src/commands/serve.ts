import { Command } from '@commander-js/extra-typings'
import { defaultStoreUrl } from '@plant-store/persistence'

export const serve = new Command('serve')
  .description('Serve the store over HTTP until SIGTERM or SIGINT arrives.')
  .option('--check', 'check the settings and the store, and exit')
  .addHelpText(
    'after',
    `
Settings come from the environment, among them:
  HOST, PORT     the address to listen on (127.0.0.1, 3000)
  DATABASE_URL   the store (${defaultStoreUrl}): file:PATH or postgres://…
  BASE_URL       the URL for clients, behind a proxy
  TRUST_PROXY    the proxies whose X-Forwarded-For is trusted
  LOG_LEVEL      fatal, error, warn, info, debug, trace or silent (info)
  LOG_FORMAT     json, pretty (the default on a terminal) or journal

docs/settings.md in the repository lists all settings. Requests need an access token: see plant-store token create --help.`,
  )
  .action(async ({ check }) => {
    // Imported here, as no other command needs an HTTP server.
    const api = await import('@plant-store/api/serve')
    if (!check) return api.serve()
    for (const { variable, setting } of await api.checkService())
      process.stderr.write(`${variable} is no setting: is ${setting} meant?\n`)
    process.stdout.write('The settings and the store are fine.\n')
  })
