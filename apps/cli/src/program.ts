import { Command } from '@commander-js/extra-typings'
import { defaultStoreUrl } from '@plant-store/persistence'
import manifest from '../package.json' with { type: 'json' }
import { backup, check, restore } from './commands/backups.ts'
import { exportPlants } from './commands/export-plants.ts'
import { importPlants } from './commands/import-plants.ts'
import { serve } from './commands/serve.ts'
import { createToken, listTokens, revokeToken } from './commands/tokens.ts'
import { webhook } from './commands/webhooks.ts'

const token = new Command('token')
  .description('Create, list and revoke access tokens.')
  .addCommand(createToken)
  .addCommand(listTokens)
  .addCommand(revokeToken)

export const program = new Command('plant-store')
  .version(manifest.version)
  .description('Serve a plant store, and manage its access tokens, plants and files.')
  .enablePositionalOptions()
  .addCommand(serve)
  .addCommand(token)
  .addCommand(webhook)
  .addCommand(importPlants)
  .addCommand(exportPlants)
  .addCommand(backup)
  .addCommand(restore)
  .addCommand(check)
  .addHelpText(
    'after',
    `
DATABASE_URL names the store (${defaultStoreUrl} if it is not set).
Commands work while servers run, except restore and export --damaged. backup and restore are for files: use pg_dump and
pg_restore for PostgreSQL.

Exit codes:
  0    done
  1    failed; one line on standard error says why
  2    wrong usage: an unknown command or option, or an invalid value
  3    done, but some lines of an import were rejected, or some plants of a damaged store could not be read
  4    refused because a server has the store open
  130  interrupted
  141  the output was closed

With --json, results are JSON on standard output, and failures {"error": …} on standard error.

Examples:
  $ plant-store serve
  $ plant-store token create --name shop --scope write --expires 90d
  $ plant-store import plants.csv
  $ plant-store export | gzip > plants.ndjson.gz
  $ plant-store backup /backup/plants-$(date +%F).backup`,
  )
