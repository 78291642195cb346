import {
  assertAbsent,
  assertFailure,
  assertTaken,
  type ContractCase,
  casesOf,
  ownId,
  refuses,
} from '../contract-case.ts'

/** Texts that some layer between client and disk might trim, fold, normalise, escape or cut. */
const texts = [
  '  leading and trailing\t\r\n',
  'Übergrößenträger e\u0301 is not \u00e9 \u{1f331}\u{1f468}\u200d\u{1f33e} 𠮷 \u{10ffff} אבג \u202e ไทย',
  '\u0001\b\f\n\r\t\u001f\u007f\u0085\u2028\u2029\ufeff\ufffd\ufffe\uffff',
  `'; DROP TABLE plants; -- %_\\" </script> \${x}`,
  'x'.repeat(100_000),
]

/** Bytes for which a decoder would put U+FFFD: one that UTF-8 never has, and an encoded surrogate. */
const brokenUtf8 = [[0xff], [0xed, 0xa0, 0x80]]

export const textCases: readonly ContractCase[] = casesOf('text is Unicode text', {
  'and comes back as it was sent, in name and in tag': async client => {
    for (const text of texts) {
      await assertTaken(client, { id: ownId(), name: text, tag: text })
    }
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

  'refuses JSON in another encoding, and a byte order mark': refuses(id => [
    [Buffer.from(`{"id":${id},"name":"n"}`, 'utf16le'), 40001],
    [`\ufeff{"id":${id},"name":"n"}`, 40001],
  ]),

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
