import { pathToFileURL } from 'node:url'
import {
  backUpStore,
  inspectStore,
  restoreStore,
  type StoreReport,
  storeFiles,
} from '@plant-store/persistence'
import { Failure } from './failure.ts'
import { counted, type Output, print } from './output.ts'
import { isSameFile, refuseTarget } from './output-file.ts'
import { showProgress } from './progress.ts'

export async function backUp(
  url: string,
  { to, force }: { to: string; force: boolean },
  output: Output,
  signal: AbortSignal,
): Promise<void> {
  refuseTarget(to, url, { force })
  const report = await withProgress(output, signal, options => backUpStore(url, to, options))
  print(output, report, `${describe(report)} backed up, and checked`)
}

export async function restore(url: string, from: string, output: Output, signal: AbortSignal): Promise<void> {
  if (storeFiles(url).some(part => isSameFile(from, part))) throw new Failure(`${from} is the store itself`)
  const report = await withProgress(output, signal, options => restoreStore(url, from, options))
  print(output, report, `${describe(report)} restored from ${from}`)
}

/** @param file checked in the place of the store, such as a backup */
export async function check(url: string, file: string | undefined, output: Output): Promise<void> {
  const report = await inspectStore(file === undefined ? url : pathToFileURL(file).href)
  const isFile = report.bytes !== undefined
  const words = `${describe(report)}: ${isFile ? 'intact' : 'counted; whether its pages are intact, pg_amcheck tells'}`
  print(output, isFile ? { ...report, intact: true } : report, words)
}

async function withProgress(
  { json }: Output,
  signal: AbortSignal,
  copy: (options: NonNullable<Parameters<typeof backUpStore>[2]>) => Promise<StoreReport>,
): Promise<StoreReport> {
  let showing: ReturnType<typeof showProgress> | undefined
  try {
    return await copy({
      signal,
      onProgress({ pages, ofPages }) {
        showing ??= showProgress({ isShown: !json, total: ofPages, unit: 'pages' })
        showing.then(progress => progress.update(pages, pages))
      },
    })
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    const progress = await showing
    progress?.[Symbol.dispose]()
  }
}

function describe({ store, bytes, schemaVersion, plants, tokens }: StoreReport): string {
  const size = bytes === undefined ? '' : ` in ${counted(bytes, 'byte')}`
  return `${store}: ${counted(plants, 'plant')} and ${counted(tokens, 'token')}${size}, schema version ${schemaVersion}`
}
