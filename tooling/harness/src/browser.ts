import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

export type { Browser, Locator, Page } from 'playwright-core'

/**
 * Where Debian keeps Chromium. The headless shell is the same engine without windows, and
 * our tests take half the time in it.
 */
const executablePath = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(
  path => existsSync(path),
)

export const hasBrowser = executablePath !== undefined

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
  return chromium.launch({
    headless: true,
    args,
    ...(executablePath && { executablePath }),
  })
}
