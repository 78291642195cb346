import { expect, test } from 'vitest'
import { startService } from './memory-service.ts'

test.each([
  {
    why: 'no proxy is trusted',
    trustedProxies: [],
    forwarded: '192.0.2.1',
    client: '127.0.0.1',
  },
  {
    why: 'a client wrote an address before the one of the proxy',
    trustedProxies: ['127.0.0.1'],
    forwarded: '192.0.2.7, 192.0.2.1',
    client: '192.0.2.1',
  },
  {
    why: 'proxies that write ports stand in a row',
    trustedProxies: ['127.0.0.1', '10.0.0.0/8', 'fd00::/8'],
    forwarded: '192.0.2.1:1012, [fd00::1]:443, 10.0.0.1:443',
    client: '192.0.2.1',
  },
  {
    why: 'a client of IPv6 has a port',
    trustedProxies: ['127.0.0.1'],
    forwarded: '[2001:db8::1]:443',
    client: '2001:db8::1',
  },
  {
    why: 'what came through the proxy is no address',
    trustedProxies: ['127.0.0.1'],
    forwarded: 'unknown, \u009b1m{',
    client: '127.0.0.1',
  },
  {
    why: 'a list from a client is longer than any row of proxies',
    trustedProxies: ['127.0.0.1', '10.0.0.0/8'],
    forwarded: Array.from({ length: 100 }, (_, n) => `10.0.0.${n}`).join(', '),
    client: '10.0.0.84',
  },
])('the log names $client where $why', async ({ trustedProxies, forwarded, client }) => {
  await using service = await startService({ trustedProxies })
  const headers = { 'x-forwarded-for': forwarded }

  await fetch(`${service.url}/healthz`, { headers })

  await expect.poll(() => service.answered.at(-1)?.client).toBe(client)
})
