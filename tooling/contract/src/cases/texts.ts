import {
  assertAbsent,
  assertFailure,
  assertTaken,
  barred,
  type ContractCase,
  casesForEach,
  casesOf,
  ownId,
  refuses,
} from '../contract-case.ts'

const fixed = 'a body of the right types is valid'
const unicode = 'text is Unicode text'

/** Texts that some layer between client and disk might trim, fold, normalise, escape or cut. */
const texts = [
  ...barred('| |  leading and trailing\t\r\n|Übergrößenträger ÅÅ|e\u0301 is not \u00e9|null|__proto__'),
  ...barred('\u{1f331}\u{1f468}\u200d\u{1f33e} 𠮷 \u{10ffff}|אבג \u202e العربية ไทย 漢字'),
  '\u0001\b\f\n\r\t\u001f\u007f\u0085\u2028\u2029\ufeff\ufffd\ufffe\uffff',
  `'; DROP TABLE plants; -- %_\\" </script> \${x}`,
  'x'.repeat(100_000),
]

/** Bytes for which a decoder would put U+FFFD. */
const brokenUtf8: readonly (readonly [name: string, bytes: readonly number[]])[] = [
  ['a byte that UTF-8 never has', [0xff]],
  ['a continuation byte alone', [0x80]],
  ['a sequence cut short', [0xe2, 0x82]],
  ['an overlong slash', [0xc0, 0xaf]],
  ['an encoded surrogate', [0xed, 0xa0, 0x80]],
  ['a code point above U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
]

export const textCases: readonly ContractCase[] = [
  ...casesForEach(
    fixed,
    texts,
    each => `keeps ${JSON.stringify(each).slice(0, 60)} as it is, in name and in tag`,
    async (client, each) => {
      for (const more of [{ tag: each }, {}]) {
        await assertTaken(client, { id: ownId(), name: each, ...more })
      }
    },
  ),

  ...casesForEach(
    unicode,
    brokenUtf8,
    ([what]) => `refuses ${what} wherever it is, and replaces nothing`,
    (client, [, bytes]) =>
      refuses(id =>
        ['"name":"', '"name":"n","tag":"', '"name":"n","x":"'].map(start => [
          Buffer.concat([Buffer.from(`{"id":${id},${start}`), Buffer.from(bytes), Buffer.from('"}')]),
          40001,
          'UTF-8',
        ]),
      )(client),
  ),

  ...casesOf(unicode, {
    'refuses JSON in another encoding, and a byte order mark': refuses(id => [
      [Buffer.from(`{"id":${id},"name":"n"}`, 'utf16le'), 40001],
      [Buffer.from(`\ufeff{"id":${id},"name":"n"}`, 'utf16le'), 40001],
      [`\ufeff{"id":${id},"name":"n"}`, 40001],
    ]),

    'refuses a lone surrogate': async client => {
      const id = ownId()
      for (const each of ['\\ud800', '\\udc00', '\\udbff\\ud800', 'a\\udc00\\ud800b']) {
        assertFailure(await client.post(`{"id":${id},"name":"${each}"}`), 40002, 'name')
        assertFailure(await client.post(`{"id":${id},"name":"n","tag":"a${each}"}`), 40002, 'tag')
        const put = await client.ask('PUT', `/plants/${id}`, { body: `{"name":"${each}"}` })
        assertFailure(put, 40002, 'name')
      }
      await assertAbsent(client, id)
    },

    'refuses U+0000': refuses(id => [
      [`{"id":${id},"name":"a\\u0000b"}`, 40002, 'name'],
      [`{"id":${id},"name":"n","tag":"\\u0000"}`, 40002, 'tag'],
    ]),
  }),
]
