import assert from 'node:assert/strict'
import { assertAbsent, assertFailure, assertTaken, refuses } from '../assertions.ts'
import { type ContractCase, casesOf, ownId } from '../contract-case.ts'
import { toJson } from '../exact-json.ts'

/**
 * Texts that some layer between client and disk might trim, fold, normalise, escape or
 * cut.
 */
const texts = [
  '  leading and trailing\t\r\n',
  'Übergrößenträger e\u0301 is not \u00e9 \u{1f331}\u{1f468}\u200d\u{1f33e} 𠮷 \u{10ffff} אבג \u202e ไทย',
  '\u0001\b\f\n\r\t\u001f\u007f\u0085\u2028\u2029\ufeff\ufffd\ufffe\uffff',
  `'; DROP TABLE plants; -- %_\\" </script> \${x}`,
  'x'.repeat(100_000),
]

/**
 * Bytes for which a decoder would put U+FFFD: one that UTF-8 never has, and an encoded
 * surrogate.
 */
const brokenUtf8 = [[0xff], [0xed, 0xa0, 0x80]]

export const textCases: readonly ContractCase[] = casesOf('text is Unicode text', {
  'and comes back as it was sent, in name and in tag': async client => {
    const plants = texts.map(text => ({ id: ownId(), name: text, tag: text }))

    await Promise.all(plants.map(plant => assertTaken(client, plant)))
  },

  'refuses broken UTF-8 wherever it is, and replaces nothing': refuses(id =>
    ['"name":"', '"name":"n","tag":"', '"name":"n","x":"'].flatMap(start =>
      brokenUtf8.map(bytes => [
        Buffer.concat([
          Buffer.from(`{"id":${id},${start}`),
          Buffer.from(bytes),
          Buffer.from('"}'),
        ]),
        40001,
        'UTF-8',
      ]),
    ),
  ),

  'refuses JSON in UTF-16, whatever its marks, and names it': refuses(id => {
    const json = `{"id":${id},"name":"n"}`
    const littleEndian = Buffer.from(json, 'utf16le')
    const markedLittleEndian = Buffer.from(`\ufeff${json}`, 'utf16le')
    return [
      [littleEndian, 40001, 'UTF-16', 'UTF-8'],
      [Buffer.from(littleEndian).swap16(), 40001, 'UTF-16'],
      [markedLittleEndian, 40001, 'UTF-16'],
      [Buffer.from(markedLittleEndian).swap16(), 40001, 'UTF-16'],
    ]
  }),

  'ignores one byte order mark before a plant, and refuses two': async client => {
    const plant = { id: ownId(), name: 'n', tag: '\ufeffmarked' }
    const marked = `\ufeff${toJson(plant)}`

    await assertTaken(client, plant, marked)

    const replaced = await client.ask('PUT', `/plants/${plant.id}`, { body: marked })
    assert.equal(replaced.status, 200, `${replaced.body}`)
    assertFailure(await client.post(`\ufeff${marked}`), 40001)
  },

  'refuses a lone surrogate and U+0000': async client => {
    const id = ownId()
    for (const each of ['\\ud800', 'a\\udc00\\ud800b', 'a\\u0000b']) {
      assertFailure(await client.post(`{"id":${id},"name":"${each}"}`), 40002, 'name')
      assertFailure(
        await client.post(`{"id":${id},"name":"n","tag":"a${each}"}`),
        40002,
        'tag',
      )
      const put = await client.ask('PUT', `/plants/${id}`, { body: `{"name":"${each}"}` })
      assertFailure(put, 40002, 'name')
    }
    await assertAbsent(client, id)
  },
})
