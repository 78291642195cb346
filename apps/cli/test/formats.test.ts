import { isUtf8 } from 'node:buffer'
import { parsePlant } from '@plant-store/domain'
import { expect, test } from 'vitest'
import { detectFormat, type FormatName, formats } from '../src/formats/formats.ts'
import {
  type LineReading,
  lineBytesMaxDefault,
  lineEndOf,
  lineFeed,
  plantReading,
  wholeLines,
} from '../src/formats/lines.ts'
import { anyPlants, eachPiece } from './any-plants.ts'

/**
 * Reads a file that arrives in pieces: each line with its plant, or with its fault and
 * what it was.
 */
async function read(
  format: FormatName,
  file: Buffer,
  pieceBytes: number,
  limits: number | Partial<LineReading> = {},
) {
  const { lineBytesMax = lineBytesMaxDefault, lineEnd = lineEndOf(file) } =
    typeof limits === 'number' ? { lineBytesMax: limits } : limits
  async function* pieces() {
    for (let at = 0; at < file.length; at += pieceBytes) {
      yield file.subarray(at, at + pieceBytes)
    }
  }
  const found: unknown[][] = []
  for await (const entries of formats[format].read(pieces(), {
    ...plantReading,
    lineBytesMax,
    lineEnd,
  })) {
    for (const entry of entries) {
      const { line, raw } = entry
      const isTooLong = 'reason' in entry && entry.reason.includes('of which')
      const keptBytes = isTooLong ? raw.buffer.byteLength : 0
      expect(keptBytes, 'memory of a line that is too long').toBeLessThan(100_000)
      found.push(
        'reason' in entry ? [line, entry.reason, textOf(raw)] : [line, entry.item],
      )
    }
  }
  return found
}

/** One character for each byte that is not part of a text. */
const textOf = (raw: Buffer) => raw.toString(isUtf8(raw) ? 'utf8' : 'latin1')

const bytes = (...parts: (string | number)[]) =>
  Buffer.concat(
    parts.map(part => (typeof part === 'string' ? Buffer.from(part) : Buffer.of(part))),
  )

test.each(['ndjson', 'csv'] as const)(
  '%s reads what it wrote, in pieces of any size',
  async format => {
    const plants = [...anyPlants(1, 200), ...eachPiece.slice(0, -1)]
    const { header, write } = formats[format]
    const file = Buffer.from(header + write(plants))
    for (const pieceBytes of [1, 2, 3, 7, 64, 1_000, file.length]) {
      const found = await read(format, file, pieceBytes)
      const where = `in pieces of ${pieceBytes}`
      expect(
        found.map(([, plant]) => plant),
        where,
      ).toEqual(plants)
      const ends = plants.map(
        (_, n) => (header + write(plants.slice(0, n))).split('\n').length,
      )
      expect(
        found.map(([line]) => line),
        where,
      ).toEqual(ends)
    }
  },
)

const csvFile = bytes(
  'name,id,tag\r\n"a ""quoted"" one",1,""\r\n\r\n"two\r\nlines",2,\n',
  'a 2" pipe,3,x\n"closed" early,4,x\n"never closed,5,x\n',
  ...['"', 0xc3, 0x28, '",6,x\n'],
  'é,7,x,y\n,8,\n"',
  ...[0xe9, '\n",9,\n'],
  '"é\n\nlong",10,é\nx,+11,x\nx,12x,x\n13\n14,14,\n"open at the end,15,x\nlast,16,x',
)
const csvEntries = [
  [2, { id: 1n, name: 'a "quoted" one', tag: '' }],
  [4, { id: 2n, name: 'two\r\nlines' }],
  [6, 'there is a quote in a field that does not begin with one', 'a 2" pipe,3,x'],
  [
    7,
    'there is something between a closing quote and the next separator',
    '"closed" early,4,x',
  ],
  [
    8,
    'there is something between a closing quote and the next separator',
    '"never closed,5,x',
  ],
  [9, 'the line is not UTF-8', '"\xc3(",6,x'],
  [10, 'there are 4 fields, and 3 columns', 'é,7,x,y'],
  [11, 'name is required', ',8,'],
  [12, 'the line is not UTF-8', '"\xe9\n",9,'],
  [14, { id: 10n, name: 'é\n\nlong', tag: 'é' }],
  [
    17,
    'id must be an integer from -9223372036854775808 to 9223372036854775807',
    'x,+11,x',
  ],
  [
    18,
    'id must be an integer from -9223372036854775808 to 9223372036854775807',
    'x,12x,x',
  ],
  [19, 'id is required', '13'],
  [20, { id: 14n, name: '14' }],
  [21, 'a quote is opened that is never closed', '"open at the end,15,x'],
  [22, { id: 16n, name: 'last', tag: 'x' }],
]

/** The length of the longest record in the files. */
const longest = 40

const jsonFile = bytes(
  '{"id":1,"name":"a"}\r\n\n  \n[2]\n',
  ...['{"id":3,"name":"', 0xff, '"}\n'],
  '{"id":4,"name":"é"}\n{"id":5,"name":"last","tag":""}',
)
const jsonEntries = [
  [1, { id: 1n, name: 'a' }],
  [4, 'plant must be an object', '[2]'],
  [5, 'the line is not UTF-8', '{"id":3,"name":"\xff"}'],
  [6, { id: 4n, name: 'é' }],
  [7, { id: 5n, name: 'last', tag: '' }],
]

test.each([
  ['csv', csvFile, csvEntries],
  ['ndjson', jsonFile, jsonEntries],
] as const)(
  '%s finds the same faults in pieces of any size',
  async (format, file, entries) => {
    for (let pieceBytes = 1; pieceBytes <= file.length; pieceBytes++) {
      for (const limit of [lineBytesMaxDefault, longest]) {
        expect(
          await read(format, file, pieceBytes, limit),
          `in pieces of ${pieceBytes}`,
        ).toEqual(entries)
      }
    }
  },
)

test('a CSV record above the limit spoils its first line only', async () => {
  const file = bytes('id,name\n1,"two\n2,short\nor\nlines"\n3,"a\nb"\n')
  for (let pieceBytes = 1; pieceBytes <= file.length; pieceBytes++) {
    expect(await read('csv', file, pieceBytes, 10), `in pieces of ${pieceBytes}`).toEqual(
      [
        [2, 'the record is longer than 10 bytes, or a quote is never closed', '1,"two'],
        [3, { id: 2n, name: 'short' }],
        [
          4,
          'id must be an integer from -9223372036854775808 to 9223372036854775807; name is required',
          'or',
        ],
        [5, 'there is a quote in a field that does not begin with one', 'lines"'],
        [6, { id: 3n, name: 'a\nb' }],
      ],
    )
    const [, open] = await read('csv', bytes('id,name\n1,a\n2,"45678\n9'), pieceBytes, 10)
    expect(open, `in pieces of ${pieceBytes}`).toEqual([
      3,
      'a quote is opened that is never closed',
      '2,"45678',
    ])
    const [, , longer] = await read(
      'csv',
      bytes('id,name\n1,a\n2,b\n3,"456789\n1'),
      pieceBytes,
      10,
    )
    expect(longer, `in pieces of ${pieceBytes}`).toEqual([
      4,
      'the record is longer than 10 bytes, or a quote is never closed',
      '3,"456789',
    ])
  }
})

test.each([
  [
    'ndjson',
    ['{"id":1,"name":"a"}\n', '{"id":2,"name":"b"}\n', '{"id":3,"name":"c"}'],
    [[1], [2], [3]],
  ],
  [
    'csv',
    ['id,name\n1,a\n', '2,b\n3,"x\n', 'y\n', 'z"\n4,d\n', '5,"e"'],
    [[2], [3], [4, 7], [8]],
  ],
  // The quote is given up once it is too long, not at the end of the file.
  ['csv', ['id,name\n', '1,"abcdefgh\n', '2,b\n', '3,c\n', '4,d\n'], [[2, 3, 4], [5]]],
] as const)('%s is read while it arrives: %j', async (format, pieces, expected) => {
  async function* arriving() {
    for (const piece of pieces) {
      yield Buffer.from(piece)
    }
  }
  const found: number[][] = []
  for await (const entries of formats[format].read(arriving(), {
    ...plantReading,
    lineBytesMax: 12,
    lineEnd: lineFeed,
  })) {
    if (entries.length > 0) {
      found.push(entries.map(({ line }) => line))
    }
  }
  expect(found).toEqual(expected)
})

test('the middle of a line that is too long is dropped', async () => {
  async function* chunks() {
    for (const chunk of ['ab\ncdef', 'ghij', 'klmn', 'op\nq', 'r']) {
      yield Buffer.from(chunk)
    }
  }
  const found: string[] = []
  for await (const lines of wholeLines(chunks(), {
    lineBytesMax: 6,
    lineEnd: lineFeed,
  })) {
    found.push(`${lines}`)
  }
  expect(found).toEqual(['ab\n', 'cdefghij\n', 'qr'])
})

test.each([
  {
    why: 'it lacks the column name',
    header: 'id,tag\n',
    reason:
      'does not name the column name (it must name the columns id and name, and perhaps tag): line 1 is id,tag',
  },
  {
    why: 'it lacks the column id',
    header: 'number;name\n',
    reason:
      'does not name the column id (it must name the columns id and name, and perhaps tag): line 1 is number;name',
  },
  {
    why: 'it names a column twice, in two cases',
    header: 'id,name,ID\n',
    reason: 'names the column id twice: line 1 is id,name,ID',
  },
  {
    why: 'it never closes a quote',
    header: 'id,"name\n',
    reason: 'is not CSV: a quote is opened that is never closed: line 1 is id,"name',
  },
  {
    why: 'it is longer than a line may be',
    header: `id,name${'x'.repeat(100)}\n`,
    reason: 'is too long',
  },
  {
    why: 'it is not UTF-8',
    header: Buffer.from('id,name,\xe9\n', 'latin1'),
    reason: 'is not UTF-8',
  },
])('a CSV header is refused if $why', async ({ header, reason }) => {
  const file = Buffer.concat([Buffer.from(header), Buffer.from('1,a\n')])

  const reading = read('csv', file, 1_000, 100)

  await expect(reading).rejects.toThrow(new Error(`the header ${reason}`))
})

test('a CSV header that continues behind a CR is refused', async () => {
  const file = bytes('id,name,tag\r1,a,x\n')

  const reading = read('csv', file, 1_000, { lineEnd: lineFeed })

  await expect(reading).rejects.toThrow(
    'the header contains a CR without an LF: line 1 is id,name,tag\r1,a,x',
  )
})

test.each([
  { what: 'commas', file: 'id,name,tag\n1,a,x\n2,b,\n' },
  { what: 'semicolons', file: 'id;name;tag\n1;a;x\n2;b;\n' },
  { what: 'tabs', file: 'id\tname\ttag\n1\ta\tx\n2\tb\t\n' },
  { what: 'bars', file: 'id|name|tag\n1|a|x\n2|b|\n' },
  { what: 'a named separator', file: 'sep=:\nid:name:tag\n1:a:x\n2:b:\n' },
  { what: 'sep= in quotes', file: '"sep=;"\r\nid;name;tag\r\n1;a;x\r\n2;b;\r\n' },
  { what: 'a header in capitals', file: 'ID,Name,TAG\n1,a,x\n2,b,\n' },
  { what: 'blanks around the header', file: ' id , name,tag \n1,a,x\n2,b,\n' },
  { what: 'a header in quotes', file: '"Id";"Name";"Tag"\n1;a;x\n2;b;\n' },
  { what: 'a missing last field', file: 'id,name,tag\n1,a,x\n2,b\n' },
  { what: 'empty fields beyond the header', file: 'id,name,tag\n1,a,x,\n2,b,,,\n' },
  { what: 'rows without content', file: ',,\nid,name,tag\n,,\n1,a,x\n  \n2,b,\n,,' },
  { what: 'CR alone', file: 'id,name,tag\r1,a,x\r2,b,' },
  { what: 'CR LF', file: 'id,name,tag\r\n1,a,x\r\n2,b,\r\n' },
])('CSV with $what is read, in pieces of any size', async ({ file }) => {
  const content = bytes(file)
  const plants = [
    { id: 1n, name: 'a', tag: 'x' },
    { id: 2n, name: 'b' },
  ]
  for (let pieceBytes = 1; pieceBytes <= content.length; pieceBytes++) {
    const found = await read('csv', content, pieceBytes)

    expect(
      found.map(([, plant]) => plant),
      `in pieces of ${pieceBytes}`,
    ).toEqual(plants)
  }
})

test('a CSV row is numbered as an editor does, after what is skipped', async () => {
  const file = bytes('sep=;\n\nid;name\n;\n1;a\nx;b\n')

  const found = await read('csv', file, 1_000)

  expect(found.map(([line]) => line)).toEqual([5, 6])
})

test('a separator or a line end in quotes is part of a text', async () => {
  const file = bytes('id;name\r1;"a;b\nc\rd,e"\r')

  const found = await read('csv', file, 1_000)

  expect(found).toEqual([[2, { id: 1n, name: 'a;b\nc\rd,e' }]])
})

test('a CSV name that is empty needs quotes', async () => {
  const file = bytes('id,name\n1,""\n2,\n3\n')

  const found = await read('csv', file, 1_000)

  expect(found).toEqual([
    [2, { id: 1n, name: '' }],
    [3, 'name is required', '2,'],
    [4, 'name is required', '3'],
  ])
})

test('NDJSON whose lines end in CR alone is read', async () => {
  const file = bytes('{"id":1,"name":"a"}\r{"id":2,"name":"b"}\r')

  const found = await read('ndjson', file, 7)

  expect(found).toEqual([
    [1, { id: 1n, name: 'a' }],
    [2, { id: 2n, name: 'b' }],
  ])
})

test('columns of CSV that no plant has are ignored, as are members of JSON', async () => {
  const plants = [
    [2, { id: 1n, name: 'a' }],
    [3, 'name is required'],
  ]
  const csv = await read('csv', bytes('tags,id,,name\nx,1,"",a\nx,2,b\n'), 1_000)
  expect(csv.map(entry => entry.slice(0, 2))).toEqual(plants)
  expect(
    await read('ndjson', bytes('\n{"tags":"x","id":1,"":"","name":"a"}\n'), 1_000),
  ).toEqual([plants[0]])
})

test('CSV has quotes only where they are needed', () => {
  const plants = ['plain', '', 'a,b', 'a"b', 'a\nb', 'a\rb'].map((name, id) =>
    parsePlant({ id: BigInt(id), name }),
  )
  expect(formats.csv.write(plants)).toBe(
    '0,plain,\n1,"",\n2,"a,b",\n3,"a""b",\n4,"a\nb",\n5,"a\rb",\n',
  )
})

test.each(['csv', 'ndjson'] as const)(
  '%s rejects a line longer than the limit, and no other',
  async format => {
    const { header, write } = formats[format]
    const line = (id: bigint, name: string) => write([parsePlant({ id, name, tag: 'x' })])
    const longest = line(1n, 'é'.repeat(1_000))
    const limit = Buffer.byteLength(longest) - 1
    const [longer, endless] = [
      line(2n, `${'é'.repeat(1_000)}y`),
      line(3n, 'é'.repeat(100_000)),
    ]
    const file = Buffer.from(
      header + [longest, longer, endless, line(4n, 'short')].join(''),
    )
    const reason = `the line is longer than ${limit} bytes, of which these are the first`
    const starts = [longer, endless].map(each =>
      textOf(Buffer.from(each).subarray(0, 1_024)),
    )
    for (const pieceBytes of [1, 100, limit - 1, limit, limit + 1, file.length]) {
      const found = await read(format, file, pieceBytes, limit)
      const where = `in pieces of ${pieceBytes}`
      const reasons = found.map(([, fault]) => (typeof fault === 'string' ? fault : ''))
      expect(reasons, where).toEqual(['', reason, reason, ''])
      const raws = found.flatMap(([, , raw]) => raw ?? [])
      expect(raws, where).toEqual(starts)
    }
  },
)

test.each([
  ['{"id":1}', undefined, 'ndjson'],
  [' \n\t{', undefined, 'ndjson'],
  ['', undefined, 'ndjson'],
  ['id,name', undefined, 'csv'],
  ['id,name', 'ndjson', 'ndjson'],
  ['{', 'csv', 'csv'],
  ['[', 'csv', 'csv'],
] as const)('%j, said to be %s, is %s', (beginning, given, expected) => {
  expect(detectFormat(Buffer.from(beginning), 'plants', given)).toBe(expected)
})

test.each([
  { what: 'a JSON array', beginning: ' [1]', advice: "jq -c '.[]'" },
  {
    what: 'an object on several lines',
    beginning: '{\n  "id": 1,\n  "name": "a"\n}\n',
    advice: "jq -c '.'",
  },
  {
    what: 'an object on several lines',
    beginning: '{"id": 1,\r\n "name": "a"}\r\n',
    advice: "jq -c '.'",
  },
])('$what is refused, with advice: $beginning', ({ what, beginning, advice }) => {
  const detect = () => detectFormat(Buffer.from(beginning), 'plants')

  const message = `plants: must have one JSON object on each line, not ${what}: convert it with ${advice} (1.7 or later: earlier versions round ids)`
  expect(detect).toThrow(expect.objectContaining({ message }))
})

test('a first line that was cut does not stop an import', () => {
  const beginning = Buffer.from('{"id":1,"name":"cu\n{"id":2,"name":"b"}\n')

  const format = detectFormat(beginning, 'plants')

  expect(format).toBe('ndjson')
})
