import { pathToFileURL } from 'node:url'
import { Command } from '@commander-js/extra-typings'
import {
  backUpStore,
  type CopyOptions,
  inspectStore,
  restoreStore,
  type StoreReport,
  storageName,
} from '@plant-store/persistence'
import { advise, onInterrupt } from '../failure.ts'
import { forceOption, refuseStore } from '../files/output-file.ts'
import { existingStoreUrl, storeUrl } from '../store-in-environment.ts'
import { counted, countedAll, jsonOption, type Output, print, printable, showProgress } from '../terminal.ts'

export const backup = new Command('backup')
  .description('Copy the store into a file while servers run, and check the copy.')
  .argument('<file>', 'to write')
  .addOption(forceOption)
  .addOption(jsonOption)
  .action(async (file, flags) => {
    const url = existingStoreUrl()
    refuseStore(file, url)
    const report = await withProgress(flags, options => backUpStore(url, file, options)).catch(advise)
    print(flags, report, `${describe(report)} backed up from ${storageName(url)}, and checked`)
  })

export const restore = new Command('restore')
  .description('Check a backup and replace the store with it. No server may have the store open.')
  .argument('<file>', 'made by backup')
  .option('--force', 'replace an existing store')
  .addOption(jsonOption)
  .action(async (file, flags) => {
    const url = storeUrl()
    refuseStore(file, url)
    const report = await withProgress(flags, options => restoreStore(url, file, options))
    const { changed, ...facts } = report
    const revokedTokens = changed?.['tokens']?.again ?? null
    const lostTokens = changed?.['tokens']?.lost ?? null
    const next = report.isNew
      ? 'There was no store before. Start the server with this DATABASE_URL.'
      : 'Start the server.'
    const words = `${describe(report)} restored from ${file}${tokenChanges(revokedTokens, lostTokens)}\n${next}`
    print(flags, { ...facts, revokedTokens, lostTokens }, words)
  })

type Names = readonly string[] | null

function tokenChanges(revoked: Names, lost: Names): string {
  if (revoked === null || lost === null)
    return '\nThe replaced store could not be read: revoked tokens may be valid again, and later ones lost.'
  const again =
    revoked.length > 0 &&
    `\nThese tokens were not in the replaced store and are valid again: ${revoked.map(printable).join(', ')}. To revoke one: plant-store token revoke <name>`
  const gone =
    lost.length > 0 &&
    `\nThese tokens are not in the backup and are lost: ${lost.map(printable).join(', ')}. To create one: plant-store token create --name <name>`
  return `${again || ''}${gone || ''}`
}

export const check = new Command('check')
  .description('Check every page of the store and count its plants and tokens. PostgreSQL is only counted.')
  .argument('[file]', 'to check instead, such as a backup')
  .addOption(jsonOption)
  .action(async (file, output) => {
    const url = file === undefined ? existingStoreUrl() : pathToFileURL(file).href
    // No advice to use export --damaged on a file, as it would read the store.
    const advice = file === undefined ? undefined : 'use an older backup'
    const report = await inspectStore(url).catch(error => advise(error, advice))
    const isFile = report.bytes !== undefined
    const words = `${describe(report)}: ${isFile ? 'intact' : 'counted; check its pages with pg_amcheck'}`
    print(output, isFile ? { ...report, intact: true } : report, words)
  })

async function withProgress<Report>(
  { json, force = false }: Output & { readonly force?: boolean | undefined },
  copy: (options: CopyOptions) => Promise<Report>,
): Promise<Report> {
  const signal = onInterrupt()
  using progress = await showProgress('page', !json)
  try {
    const onProgress: CopyOptions['onProgress'] = ({ pages, ofPages }) =>
      progress.update(pages, pages, ofPages)
    return await copy({ force, signal, onProgress })
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}

function describe({ store, bytes, schemaVersion, ...counts }: StoreReport): string {
  const size = bytes === undefined ? '' : ` in ${counted(bytes, 'byte')}`
  return `${store}: ${countedAll(counts)}${size}, schema version ${schemaVersion}`
}
