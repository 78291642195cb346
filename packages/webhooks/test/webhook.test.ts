import {
  isPublicAddress,
  mintWebhookId,
  parseWebhookEvents,
  parseWebhookUrl,
} from '@plant-store/webhooks'
import { expect, test } from 'vitest'

const longest = `https://shop.example/${'a'.repeat(1_979)}`

test.each([
  ['https://shop.example/plants?a=b', 'https://shop.example/plants?a=b'],
  ['https://shop.example/#part', 'https://shop.example/'],
  ['https://93.184.215.14/', 'https://93.184.215.14/'],
  ['https://[2606:2800:21f::1]/', 'https://[2606:2800:21f::1]/'],
  [longest, longest],
])('%s is a webhook', (text, url) => {
  expect(parseWebhookUrl(text, false)).toBe(url)
})

test.each(
  Object.entries({
    'shop.example': 'must be an https URL',
    'http://shop.example/': 'must be https without --allow-private',
    'ftp://shop.example/': 'must be an https URL',
    'https://flora@shop.example/': 'must not contain credentials',
    [`${longest}a`]: 'must have at most 2000 characters',
    'https://127.1/':
      'must not have the private address 127.0.0.1 without --allow-private',
    'https://[::1]/': 'must not have the private address ::1',
  }),
)('%s is no webhook', (text, message) => {
  expect(() => parseWebhookUrl(text, false)).toThrow(message)
})

const publicAddresses = {
  'an IPv4 address': '93.184.215.14',
  'an IPv6 address': '2606:2800:21f::1',
  'a public IPv4 address behind NAT64': '64:ff9b::808:808',
  'a public IPv4 address behind a local NAT64': '64:ff9b:1::808:808',
  'a public IPv4 address, mapped': '::ffff:8.8.8.8',
  'a public IPv4 address, translated': '::ffff:0:8.8.8.8',
  'a public IPv4 address over 6to4': '2002:808:808::1',
}

const privateAddresses = {
  'this machine': '127.0.0.1',
  'a link, with the metadata of clouds': '169.254.169.254',
  'this machine, by IPv6': '::1',
  'this machine, mapped': '::ffff:127.0.0.1',
  'this machine, IPv4-compatible': '::127.0.0.1',
  'this machine, translated': '::ffff:0:127.0.0.1',
  'metadata behind NAT64': '64:ff9b::a9fe:a9fe',
  'this machine behind a local NAT64': '64:ff9b:1::7f00:1',
  'a private /48 behind NAT64, with a public end': '64:ff9b:1:a00:0:100:808:808',
  'what another local NAT64 has': '64:ff9b:1:2::808:808',
  'a private network over 6to4': '2002:c0a8:1::1',
  Teredo: '2001:0:808:808::f7f7:f7f7',
  'a private network': 'fd00::1',
  documentation: '2001:db8::1',
  'what nobody has assigned': '4000::1',
}

test.each(Object.entries(publicAddresses))('%s is public: %s', (_, address) => {
  expect(isPublicAddress(address)).toBe(true)
})

test.each(Object.entries(privateAddresses))('%s is not public: %s', (_, address) => {
  expect(isPublicAddress(address)).toBe(false)
})

test.each(['http://127.0.0.1:8080/', 'https://[::1]/', 'https://shop.example/'])(
  'a webhook that allows private addresses may have the URL %s',
  url => {
    expect(parseWebhookUrl(url, true)).toBe(url)
  },
)

test('a webhook that allows private addresses has an https or http URL', () => {
  const parse = () => parseWebhookUrl('file:///plants', true)

  expect(parse).toThrow('must be an https or http URL')
})

test('names can be typed', () => {
  expect(mintWebhookId()).toMatch(/^wh_[0-9a-f]{12}$/)
})

test.each(
  Object.entries({
    added: ['added'],
    'removed,added,removed': ['added', 'removed'],
    ' changed , removed ': ['changed', 'removed'],
  }),
)('the list "%s" has its events once each, in order', (text, events) => {
  expect(parseWebhookEvents(text)).toEqual(events)
})

test.each(['', 'added,', 'Added', 'add', 'added removed', 'all', '*'])(
  'the list "%s" is refused, because it names no event',
  text => {
    expect(() => parseWebhookEvents(text)).toThrow(/^must be some of added, changed/)
  },
)
