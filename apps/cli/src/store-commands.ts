import { pathToFileURL } from 'node:url'
import { backUpStore, inspectStore, restoreStore, type StoreReport } from '@plant-store/persistence'
import { counted, type Output, print } from './output.ts'
import { refuseStore } from './output-file.ts'
import { showProgress } from './progress.ts'

export async function backUp(
  url: string,
  { to, force }: { to: string; force: boolean },
  output: Output,
  signal: AbortSignal,
): Promise<void> {
  refuseStore(to, url)
  const report = await withProgress(output, signal, options => backUpStore(url, to, { ...options, force }))
  print(output, report, `${describe(report)} backed up, and checked`)
}

export async function restore(
  url: string,
  { from, force }: { from: string; force: boolean },
  output: Output,
  signal: AbortSignal,
): Promise<void> {
  refuseStore(from, url)
  const report = await withProgress(output, signal, options => restoreStore(url, from, { ...options, force }))
  const { revokedTokens = null } = report
  print(
    output,
    { ...report, revokedTokens },
    `${describe(report)} restored from ${from}${broughtBack(revokedTokens)}`,
  )
}

function broughtBack(tokens: readonly string[] | null): string {
  if (tokens === null) return '\nThe store before it could not be read: revoked tokens may be valid again.'
  if (tokens.length === 0) return ''
  return `\nThese tokens were not in the store before it, and are valid again: ${tokens.join(', ')}. To revoke one: plant-store token revoke <name>`
}

/** @param file checked in the place of the store, such as a backup */
export async function check(url: string, file: string | undefined, output: Output): Promise<void> {
  const report = await inspectStore(file === undefined ? url : pathToFileURL(file).href)
  const isFile = report.bytes !== undefined
  const words = `${describe(report)}: ${isFile ? 'intact' : 'counted; whether its pages are intact, pg_amcheck tells'}`
  print(output, isFile ? { ...report, intact: true } : report, words)
}

async function withProgress<Report extends StoreReport>(
  { json }: Output,
  signal: AbortSignal,
  copy: (options: NonNullable<Parameters<typeof backUpStore>[2]>) => Promise<Report>,
): Promise<Report> {
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
