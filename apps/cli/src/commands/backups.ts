import { pathToFileURL } from 'node:url'
import { Command, Option } from '@commander-js/extra-typings'
import {
  type CopyOptions,
  printable,
  readLastBackup,
  storageName,
} from '@plant-store/engine'
import {
  backUpStore,
  inspectStore,
  restoreStore,
  type StoreReport,
} from '@plant-store/persistence'
import { onInterrupt, throwWithAdvice } from '../command-error.ts'
import { backupFolder } from '../files/backup-folder.ts'
import { filePath, forceOption, refuseStore } from '../files/output-file.ts'
import { existingStoreUrl, storeUrl } from '../store-in-environment.ts'
import {
  counted,
  countedAll,
  countOf,
  jsonOption,
  minute,
  type Output,
  print,
  showProgress,
} from '../terminal.ts'

export const backup = new Command('backup')
  .description('Copy the store into a file while servers run, and check the copy.')
  .argument('<file>', 'to write, or with --keep a folder', filePath)
  .addOption(
    new Option(
      '--keep <count>',
      'write a new file into the folder, and remove all but the newest',
    )
      .argParser(countOf)
      .conflicts('force'),
  )
  .addOption(forceOption)
  .addOption(jsonOption)
  .action(async (named, { keep, ...flags }) => {
    const url = existingStoreUrl()
    const name = storageName(url)
    const folder = keep === undefined ? undefined : backupFolder(named, name)
    const file = folder?.next ?? named
    refuseStore(file, url)
    const report = await withProgress(flags, options =>
      backUpStore(url, file, options),
    ).catch(throwWithAdvice)
    const removed = keep !== undefined && folder?.keepNewest(keep)
    const rest = removed ? `; ${counted(removed, 'older one')} removed` : ''
    await print(
      flags,
      flat(report),
      `${describe(report)} backed up from ${name}, and checked${rest}`,
    )
    if (report.unrecorded !== undefined) {
      process.stderr.write(
        `The time of this backup could not be recorded beside the store: ${report.unrecorded}\n`,
      )
    }
  })

export const restore = new Command('restore')
  .description(
    'Check a backup and replace the store with it. No server may have the store open.',
  )
  .argument('<file>', 'made by backup', filePath)
  .option('--force', 'replace an existing store')
  .addOption(jsonOption)
  .action(async (file, flags) => {
    const url = storeUrl()
    refuseStore(file, url)
    const report = await withProgress(flags, options => restoreStore(url, file, options))
    const { changed, ...facts } = flat(report)
    const revokedTokens = changed?.['tokens']?.again ?? null
    const lostTokens = changed?.['tokens']?.lost ?? null
    const next = report.isNew
      ? 'There was no store before. Start the server with this DATABASE_URL.'
      : 'Start the server.'
    const words = `${describe(report)} restored from ${file}${tokenChanges(revokedTokens, lostTokens)}\n${next}`
    await print(flags, { ...facts, revokedTokens, lostTokens }, words)
  })

type Names = readonly string[] | null

function tokenChanges(revoked: Names, lost: Names): string {
  if (revoked === null || lost === null) {
    return '\nThe replaced store could not be read: revoked tokens may be valid again, and later ones lost.'
  }
  const again =
    revoked.length > 0 &&
    `\nThese tokens were not in the replaced store and are valid again: ${revoked.map(printable).join(', ')}. To revoke one: plant-store token revoke <name>`
  const gone =
    lost.length > 0 &&
    `\nThese tokens are not in the backup and are lost: ${lost.map(printable).join(', ')}. To create one: plant-store token create --name <name>`
  return `${again || ''}${gone || ''}`
}

export const check = new Command('check')
  .description(
    'Check every page of the store and count what it has. PostgreSQL is only counted.',
  )
  .argument('[file]', 'to check instead, such as a backup', filePath)
  .addOption(jsonOption)
  .action(async (file, output) => {
    const url = file === undefined ? existingStoreUrl() : pathToFileURL(file).href
    // No advice to use export --damaged on a file, as it would read the store.
    const advice = file === undefined ? undefined : 'use an older backup'
    const report = await inspectStore(url).catch(error => throwWithAdvice(error, advice))
    if (report.bytes === undefined) {
      return await print(
        output,
        flat(report),
        `${describe(report)}: counted; check its pages with pg_amcheck`,
      )
    }
    const lastBackup = file === undefined ? await readLastBackup(url) : undefined
    const rest =
      lastBackup === undefined ? '' : `; last backup: ${minute(lastBackup, 'none')}`
    await print(
      output,
      { ...flat(report), intact: true, lastBackup },
      `${describe(report)}: intact${rest}`,
    )
  })

async function withProgress<Report>(
  { json, force = false }: Output & { readonly force?: boolean | undefined },
  copy: (options: CopyOptions) => Promise<Report>,
): Promise<Report> {
  const signal = onInterrupt()
  using progress = await showProgress('page', !json)
  try {
    return await copy({
      force,
      signal,
      onProgress: ({ pages, ofPages }) => progress.update(pages, pages, ofPages),
    })
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}

function describe({ store, bytes, schemaVersion, counts }: StoreReport): string {
  const size = bytes === undefined ? '' : ` in ${counted(bytes, 'byte')}`
  return `${store}: ${countedAll(counts)}${size}, schema version ${schemaVersion}`
}

/** Returns a report as JSON has it, with the counts among the rest. */
function flat<Report extends StoreReport>({ counts, ...report }: Report) {
  return { ...report, ...counts }
}
