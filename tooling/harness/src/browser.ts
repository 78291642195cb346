import { existsSync } from 'node:fs'
import { type Browser, type BrowserServer, chromium } from 'playwright-core'

export type { Browser, Locator, Page, Route } from 'playwright-core'

/**
 * Where Debian keeps Chromium. The headless shell is the same engine without windows, and
 * our tests take half the time in it.
 */
const executablePath = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(
  path => existsSync(path),
)

export const hasBrowser = executablePath !== undefined

const options = {
  headless: true,
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    // Tabs of one profile share a process for each site. A page with a
    // Cross-Origin-Opener-Policy would otherwise get a new one at each visit.
    '--renderer-process-limit=1',
  ],
  ...(executablePath && { executablePath }),
}

export function launchBrowser(): Promise<Browser> {
  return chromium.launch(options)
}

/** Starts a browser for several processes, which connect to its `wsEndpoint()`. */
export function startBrowserServer(): Promise<BrowserServer> {
  return chromium.launchServer(options)
}

export function connectToBrowser(endpoint: string): Promise<Browser> {
  return chromium.connect(endpoint)
}
