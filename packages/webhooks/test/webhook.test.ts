import { isPublicAddress, mintWebhookId, parseWebhookUrl } from '@plant-store/webhooks'
import { expect, test } from 'vitest'

test.each([
  ['https://shop.example/plants?a=b', 'https://shop.example/plants?a=b'],
  ['HTTPS://Shop.Example', 'https://shop.example/'],
  ['https://shop.example/#part', 'https://shop.example/'],
  ['https://93.184.215.14/', 'https://93.184.215.14/'],
  ['https://[2606:2800:21f::1]/', 'https://[2606:2800:21f::1]/'],
  [
    `https://shop.example/${'a'.repeat(1_979)}`,
    `https://shop.example/${'a'.repeat(1_979)}`,
  ],
])('%s is a webhook', (text, url) => {
  expect(parseWebhookUrl(text, false)).toBe(url)
})

test.each([
  ['shop.example', 'must be an https URL'],
  ['http://shop.example/', 'must be https without --allow-private'],
  ['ftp://shop.example/', 'must be an https URL'],
  ['https://flora@shop.example/', 'must not contain credentials'],
  ['https://:secret@shop.example/', 'must not contain credentials'],
  [`https://shop.example/${'a'.repeat(1_980)}`, 'must have at most 2000 characters'],
  [
    'https://127.1/',
    'must not have the private address 127.0.0.1 without --allow-private',
  ],
  ['https://[::1]/', 'must not have the private address ::1'],
])('%s is none', (text, message) => {
  expect(() => parseWebhookUrl(text, false)).toThrow(message)
})

test.each([
  [true, '93.184.215.14 2606:2800:21f::1'],
  [
    false,
    '127.0.0.1 0.0.0.0 10.0.0.1 172.16.0.1 192.168.0.1 169.254.169.254 100.64.0.1 255.255.255.255',
  ],
  [
    false,
    '224.0.0.1 ::1 :: ::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1 ::ffff:0:127.0.0.1',
  ],
  [false, '64:ff9b::127.0.0.1 2002:7f00:1:: fe80::1 fd00::1 ff02::1'],
])('whether these are public is %s: %s', (isPublic, addresses) => {
  for (const address of addresses.split(' ')) {
    expect([address, isPublicAddress(address)]).toEqual([address, isPublic])
  }
})

test('http is for those that allow private addresses', () => {
  for (const url of [
    'http://127.0.0.1:8080/',
    'https://[::1]/',
    'https://shop.example/',
  ]) {
    expect(parseWebhookUrl(url, true)).toBe(url)
  }
  expect(() => parseWebhookUrl('file:///plants', true)).toThrow(
    'must be an https or http URL',
  )
})

test('names can be typed', () => {
  expect(mintWebhookId()).toMatch(/^wh_[0-9a-f]{12}$/)
})
