import { pathToFileURL } from 'node:url'
import { Command, Option } from '@commander-js/extra-typings'
import {
  type CopyOptions,
  messageOf,
  printable,
  readLastBackup,
  storageName,
} from '@plant-store/engine'
import {
  type BackupReport,
  backUpStore,
  inspectStore,
  restoreStore,
  type StoreReport,
} from '@plant-store/persistence'
import { Interruption, throwWithAdvice } from '../command-error.ts'
import { nextBackup, removeOldBackups } from '../files/backup-folder.ts'
import { refuseStore } from '../files/output-file.ts'
import { countOf, filePath, forceOption, jsonOption } from '../options.ts'
import { type Output, print } from '../output.ts'
import { showProgress } from '../progress.ts'
import { existingStoreUrl, storeUrl } from '../store-in-environment.ts'
import { counted, countedAll, minute } from '../words.ts'

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
  .action(async (path, { keep, ...options }) => {
    const url = existingStoreUrl()
    if (keep === undefined) {
      const copy = await backUp(url, path, options)
      await printBackup(copy, url, options)
      return
    }

    const made = nextBackup(path, storageName(url))
    const copy = await backUp(url, made, { ...options, createsFolder: true })
    const removed = removeOldBackups(path, { made, storeId: copy.storeId, keep })
    await printBackup(copy, url, options, removed)
  })

type CopyFlags = Output &
  Pick<CopyOptions, 'createsFolder'> & { readonly force?: boolean | undefined }

async function backUp(
  url: string,
  file: string,
  options: CopyFlags,
): Promise<BackupReport> {
  refuseStore(file, url)
  try {
    return await withProgress(options, copyOptions => backUpStore(url, file, copyOptions))
  } catch (error) {
    throwWithAdvice(error)
  }
}

async function printBackup(
  { storeId: _, ...report }: BackupReport,
  url: string,
  output: Output,
  removed = 0,
): Promise<void> {
  let words = `${describe(report)} backed up from ${storageName(url)}, and checked`
  if (removed > 0) {
    words += `; ${counted(removed, 'older one')} removed`
  }
  await print(output, flat(report), words)
  if (report.unrecorded !== undefined) {
    process.stderr.write(
      `The time of this backup could not be recorded beside the store: ${report.unrecorded}\n`,
    )
  }
}

export const restore = new Command('restore')
  .description(
    'Check a backup and replace the store with it. No server may have the store open.',
  )
  .argument('<file>', 'made by backup', filePath)
  .option('--force', 'replace an existing store')
  .addOption(jsonOption)
  .action(async (file, options) => {
    const url = storeUrl()
    refuseStore(file, url)
    const report = await withProgress(options, copyOptions =>
      restoreStore(url, file, copyOptions),
    )

    const { changed, ...facts } = flat(report)
    const revokedTokens = changed?.['tokens']?.again ?? null
    const lostTokens = changed?.['tokens']?.lost ?? null
    const lines = [
      `${describe(report)} restored from ${file}`,
      ...describeTokens(revokedTokens, lostTokens),
      nextStep(report.isNew),
    ]
    await print(options, { ...facts, revokedTokens, lostTokens }, lines.join('\n'))
  })

/** The names of tokens, or `null` if they are unknown. */
type Names = readonly string[] | null

function describeTokens(revoked: Names, lost: Names): readonly string[] {
  if (revoked === null || lost === null) {
    return [
      'The replaced store could not be read: revoked tokens may be valid again, and later ones lost.',
    ]
  }
  const lines: string[] = []
  if (revoked.length > 0) {
    const names = revoked.map(printable).join(', ')
    lines.push(
      `These tokens were not in the replaced store and are valid again: ${names}. To revoke one: plant-store token revoke <name>`,
    )
  }
  if (lost.length > 0) {
    const names = lost.map(printable).join(', ')
    lines.push(
      `These tokens are not in the backup and are lost: ${names}. To create one: plant-store token create --name <name>`,
    )
  }
  return lines
}

function nextStep(isNewStore: boolean): string {
  if (isNewStore) {
    return 'There was no store before. Start the server with this DATABASE_URL.'
  }
  return 'Start the server.'
}

export const check = new Command('check')
  .description(
    'Check every page of the store and count what it has. PostgreSQL is only counted.',
  )
  .argument('[file]', 'to check instead, such as a backup', filePath)
  .addOption(jsonOption)
  .action(async (file, output) => {
    if (file === undefined) {
      await checkStore(output)
    } else {
      await checkFile(file, output)
    }
  })

async function checkStore(output: Output): Promise<void> {
  const url = existingStoreUrl()
  const report = await inspectStore(url).catch(throwWithAdvice)
  if (report.bytes === undefined) {
    const words = `${describe(report)}: counted; check its pages with pg_amcheck`
    await print(output, flat(report), words)
    return
  }

  const { words, ...time } = await describeLastBackup(url)
  const result = { ...flat(report), intact: true, ...time }
  await print(output, result, `${describe(report)}: intact; ${words}`)
}

async function describeLastBackup(url: string) {
  try {
    const lastBackup = await readLastBackup(url)
    return { lastBackup, words: `last backup: ${minute(lastBackup, 'none')}` }
  } catch (error) {
    const lastBackupUnread = messageOf(error)
    return { lastBackupUnread, words: lastBackupUnread }
  }
}

async function checkFile(file: string, output: Output): Promise<void> {
  const { href } = pathToFileURL(file)
  // The usual advice is to use export --damaged, but that would read the store.
  const report = await inspectStore(href).catch(error =>
    throwWithAdvice(error, 'use an older backup'),
  )
  await print(output, { ...flat(report), intact: true }, `${describe(report)}: intact`)
}

async function withProgress<Report>(
  { json, force = false, createsFolder = false }: CopyFlags,
  copy: (options: CopyOptions) => Promise<Report>,
): Promise<Report> {
  using interruption = new Interruption()
  const { signal } = interruption
  using progress = await showProgress('page', !json)
  try {
    return await copy({
      force,
      createsFolder,
      signal,
      onProgress: ({ pages, ofPages }) => progress.update(pages, pages, ofPages),
    })
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}

function describe({ store, bytes, schemaVersion, counts }: StoreReport): string {
  let contents = countedAll(counts)
  if (bytes !== undefined) {
    contents += ` in ${counted(bytes, 'byte')}`
  }
  return `${store}: ${contents}, schema version ${schemaVersion}`
}

/** Returns a report as JSON has it, with the counts among the rest. */
function flat<Report extends StoreReport>({ counts, ...report }: Report) {
  return { ...report, ...counts }
}
