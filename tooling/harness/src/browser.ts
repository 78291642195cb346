import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

export type { Locator, Page } from 'playwright-core'

const { CI } = process.env
/** Debian's. */
const executablePath = '/usr/bin/chromium'

/** Whether there is a browser to test with. Where everything must be tested, that there is none is a failure. */
export const hasBrowser = existsSync(executablePath)
if (!hasBrowser) {
  const missing = `${executablePath} is missing: apt-get install chromium`
  if (CI) throw new Error(missing)
  console.error(`NOT TESTED: what a browser makes of the service. ${missing}`)
}

export function launchBrowser(): Promise<Browser> {
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ]
  return chromium.launch({ executablePath, headless: true, args })
}
