import { expect, test } from 'vitest'
import { startService } from './memory-service.ts'

const local = '127.0.0.1'
const addresses = Array.from({ length: 100 }, (_, n) => `10.0.0.${n}`).join(', ')

test.each<[why: string, trusted: string[], forwarded: string, client: string]>([
  ['no proxy is trusted', [], '192.0.2.1', local],
  [
    'a client wrote an address before the one of the proxy',
    [local],
    '192.0.2.7, 192.0.2.1',
    '192.0.2.1',
  ],
  [
    'proxies that write ports stand in a row',
    [local, '10.0.0.0/8', 'fd00::/8'],
    '192.0.2.1:1012, [fd00::1]:443, 10.0.0.1:443',
    '192.0.2.1',
  ],
  ['a client of IPv6 has a port', [local], '[2001:db8::1]:443', '2001:db8::1'],
  ['what came is no address', [local], 'unknown, \u009b1m{', local],
  ['a list is longer than any row', [local, '10.0.0.0/8'], addresses, '10.0.0.84'],
])('the client in the log is right where %s', async (_, trusted, forwarded, client) => {
  await using service = await startService({ trustedProxies: trusted })
  const headers = { 'x-forwarded-for': forwarded }

  await fetch(`${service.url}/healthz`, { headers })

  await expect.poll(() => service.answered.at(-1)?.client).toBe(client)
})
