import { pathToFileURL } from 'node:url'
import { Command, Option } from '@commander-js/extra-typings'
import {
  type CopyOptions,
  isDamage,
  messageOf,
  printable,
  type RestoredRows,
  readLastBackup,
  storageName,
} from '@plant-store/engine'
import {
  backUpStore,
  inspectStore,
  restoreStore,
  type StoreReport,
} from '@plant-store/persistence'
import { CommandError, Interruption, throwWithAdvice } from '../command-error.ts'
import { nextBackup, removeOldBackups } from '../files/backup-folder.ts'
import { refuseStore } from '../files/output-file.ts'
import { countOf, filePath, forceOption, jsonOption } from '../options.ts'
import { type Output, print } from '../output.ts'
import { showProgress } from '../progress.ts'
import { storeUrl } from '../store-in-environment.ts'
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
  .action(async (path, { keep, force = false, json }) => {
    const url = storeUrl()
    const name = storageName(url)
    const file = keep === undefined ? path : nextBackup(path, name)
    refuseStore(file, url)
    const { storeId, ...report } = await withProgress(json, running =>
      backUpStore(url, file, { force, createsFolder: keep !== undefined, ...running }),
    ).catch(throwWithAdvice)
    const removed =
      keep === undefined ? 0 : removeOldBackups(path, { made: file, storeId, keep })

    let words = `${describe(report)} backed up from ${name}, and checked`
    if (removed > 0) {
      words += `; ${counted(removed, 'older one')} removed`
    }
    await print({ json }, flat(report), words)
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
  .action(async (file, { force = false, json }) => {
    const url = storeUrl()
    refuseStore(file, url)
    const report = await withProgress(json, running =>
      restoreStore(url, file, { force, ...running }),
    )

    const { changed, ...facts } = flat(report)
    const tokens = changed?.['tokens']
    const lines = [
      `${describe(report)} restored from ${file}`,
      ...describeTokens(tokens),
      report.isNew
        ? 'There was no store before. Start the server with this DATABASE_URL.'
        : 'Start the server.',
    ]
    const revokedTokens = tokens?.again ?? null
    const lostTokens = tokens?.lost ?? null
    await print({ json }, { ...facts, revokedTokens, lostTokens }, lines.join('\n'))
  })

/** @param tokens `undefined` if they are unknown */
function describeTokens(tokens: RestoredRows | undefined): readonly string[] {
  if (tokens === undefined) {
    return [
      'The replaced store could not be read: revoked tokens may be valid again, and later ones lost.',
    ]
  }
  const line = (outcome: string, names: readonly string[], advice: string) =>
    names.length === 0
      ? []
      : [`These tokens ${outcome}: ${names.map(printable).join(', ')}. ${advice}`]
  return [
    ...line(
      'were not in the replaced store and are valid again',
      tokens.again,
      'To revoke one: plant-store token revoke <name>',
    ),
    ...line(
      'are not in the backup and are lost',
      tokens.lost,
      'To create one: plant-store token create --name <name>',
    ),
  ]
}

export const check = new Command('check')
  .description(
    'Check every page of the store and count what it has. PostgreSQL is only counted.',
  )
  .argument('[file]', 'to check instead, such as a backup', filePath)
  .addOption(jsonOption)
  .action((file, output) =>
    file === undefined ? checkStore(output) : checkFile(file, output),
  )

async function checkStore(output: Output) {
  const url = storeUrl()
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

async function checkFile(file: string, output: Output) {
  // The usual advice is to use export --damaged, but that would read the store.
  const report = await inspectStore(pathToFileURL(file).href).catch(error => {
    const advice = isDamage(error) ? ': use an older backup' : ''
    throw new CommandError(messageOf(error) + advice)
  })
  await print(output, { ...flat(report), intact: true }, `${describe(report)}: intact`)
}

async function withProgress<Report>(
  json: boolean | undefined,
  copy: (running: CopyOptions) => Promise<Report>,
): Promise<Report> {
  using interruption = new Interruption()
  const { signal } = interruption
  using progress = await showProgress('page', !json)
  return await copy({
    signal,
    onProgress: ({ pages, ofPages }) => progress.update(pages, pages, ofPages),
  }).catch(error => {
    signal.throwIfAborted()
    throw error
  })
}

function describe({ store, bytes, schemaVersion, counts }: StoreReport) {
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
