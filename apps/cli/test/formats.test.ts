import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import { longPlant } from '@plant-store/domain/testing'
import { writeJsonRecord } from '@plant-store/json'
import { expect, test } from 'vitest'
import {
  detectFormat,
  type FormatName,
  formats,
  formatToWrite,
} from '../src/formats/formats.ts'
import {
  type Entry,
  type LineReading,
  lineBytesMaxDefault,
  lineEndOf,
  lineFeed,
  plantReading,
  wholeLines,
} from '../src/formats/lines.ts'
import { anyPlants, eachPiece } from './any-plants.ts'

async function* inPieces(file: Buffer, bytes: number) {
  for (let start = 0; start < file.length; start += bytes) {
    yield file.subarray(start, start + bytes)
  }
}

function createReader(
  format: FormatName,
  file: Buffer,
  limits: Partial<LineReading> = {},
) {
  const lineLimits = { lineBytesMax: lineBytesMaxDefault, lineEnd: lineEndOf(file) }
  return formats[format].createReader({ ...plantReading, ...lineLimits, ...limits })
}

/** Returns each entry of a file that arrives in pieces. */
async function read(
  format: FormatName,
  file: Buffer,
  pieceBytes: number,
  limits: Partial<LineReading> = {},
): Promise<Entry[]> {
  const reader = createReader(format, file, limits)
  const entries: Entry[] = []
  for await (const some of reader.read(inPieces(file, pieceBytes))) {
    entries.push(...some)
  }
  return entries
}

/** Returns an entry as its line, and its plant or its fault with what it was. */
function inWords(entry: Entry): string {
  if ('item' in entry) {
    return `${entry.line} ${writeJsonRecord(entry.item)}`
  }
  const { line, reason, raw } = entry
  // One character for each byte that is not part of a text.
  return `${line} ${reason}: ${raw.toString(isUtf8(raw) ? 'utf8' : 'latin1')}`
}

/** Numbers of bytes around those of the lines and records below, and a whole file. */
const pieceSizes = [...Array(16).keys(), 1_000].map(size => size + 1)

/** Reads a file in pieces of any size, with the same outcome. */
async function expectEntries(
  format: FormatName,
  file: Buffer,
  entries: readonly string[],
  limits: Partial<LineReading> = {},
): Promise<void> {
  for (const pieceBytes of pieceSizes) {
    const results = await read(format, file, pieceBytes, limits)

    expect(results.map(inWords), `in pieces of ${pieceBytes}`).toEqual(entries)
  }
}

/** Returns the parts behind each other: texts in UTF-8, and single bytes. */
function bytes(...parts: (string | number)[]): Buffer {
  const buffers = parts.map(part =>
    typeof part === 'string' ? Buffer.from(part) : Buffer.of(part),
  )
  return Buffer.concat(buffers)
}

test.each(['ndjson', 'csv'] as const)(
  '%s reads what it wrote, in pieces of any size',
  async format => {
    const plants = [...anyPlants(1, 200), ...eachPiece().slice(0, -1)]
    const { header, write } = formats[format]
    const file = Buffer.from(header + write(plants))
    const expected = plants.map((item, n) => {
      const before = header + write(plants.slice(0, n))
      return inWords({ line: before.split('\n').length, raw: file, item })
    })
    for (const pieceBytes of [1, 7, 64, file.length]) {
      const results = await read(format, file, pieceBytes)

      expect(results.map(inWords), `in pieces of ${pieceBytes}`).toEqual(expected)
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
const surrounded = 'there is something between a closing quote and the next separator'
const noInteger = 'id must be an integer from -9223372036854775808 to 9223372036854775807'
const csvEntries = [
  '2 {"id":1,"name":"a \\"quoted\\" one","tag":""}',
  '4 {"id":2,"name":"two\\r\\nlines"}',
  '6 there is a quote in a field that does not begin with one: a 2" pipe,3,x',
  `7 ${surrounded}: "closed" early,4,x`,
  `8 ${surrounded}: "never closed,5,x`,
  '9 the line is not UTF-8: "\xc3(",6,x',
  '10 there are 4 fields, and 3 columns: é,7,x,y',
  '11 name is required: ,8,',
  '12 the line is not UTF-8: "\xe9\n",9,',
  '14 {"id":10,"name":"é\\n\\nlong","tag":"é"}',
  `17 ${noInteger}: x,+11,x`,
  `18 ${noInteger}: x,12x,x`,
  '19 id is required: 13',
  '20 {"id":14,"name":"14"}',
  '21 a quote is opened that is never closed: "open at the end,15,x',
  '22 {"id":16,"name":"last","tag":"x"}',
]

const jsonFile = bytes(
  '{"id":1,"name":"a"}\r\n\n  \n[2]\n',
  ...['{"id":3,"name":"', 0xff, '"}\n'],
  '{"id":4,"name":"é"}\n{"id":5,"tags":"x","":"","name":"last","tag":""}',
)
const jsonEntries = [
  '1 {"id":1,"name":"a"}',
  '4 plant must be an object: [2]',
  '5 the line is not UTF-8: {"id":3,"name":"\xff"}',
  '6 {"id":4,"name":"é"}',
  '7 {"id":5,"name":"last","tag":""}',
]

/** The length of the longest record in the files. */
const longestBytes = 48

test.each([
  ['csv', csvFile, csvEntries],
  ['ndjson', jsonFile, jsonEntries],
] as const)(
  'the faults of %s are found in pieces of any size',
  async (format, file, entries) => {
    for (const lineBytesMax of [lineBytesMaxDefault, longestBytes]) {
      await expectEntries(format, file, entries, { lineBytesMax })
    }
  },
)

test('a CSV record that is too long spoils its first line only', () => {
  const file = bytes('id,name\n1,"two\n2,short\nor\nlines"\n3,"a\nb"\n')
  const entries = [
    '2 the record is longer than 10 bytes, or a quote is never closed: 1,"two',
    '3 {"id":2,"name":"short"}',
    `4 ${noInteger}; name is required: or`,
    '5 there is a quote in a field that does not begin with one: lines"',
    '6 {"id":3,"name":"a\\nb"}',
  ]

  return expectEntries('csv', file, entries, { lineBytesMax: 10 })
})

test.each([
  [
    'ndjson',
    ['{"id":1,"name":"a"}\n', '{"id":2,"name":"b"}\n', '{"id":3,"name":"c"}'],
    '1 | 2 | 3',
  ],
  [
    'csv',
    ['id,name\n1,a\n', '2,b\n3,"x\n', 'y\n', 'z"\n4,d\n', '5,"e"'],
    '2 | 3 | 4,7 | 8',
  ],
  // The quote is given up once it is too long, not at the end of the file.
  ['csv', ['id,name\n', '1,"abcdefgh\n', '2,b\n', '3,c\n', '4,d\n'], '2,3,4 | 5'],
] as const)('%s is read while it arrives: %j', async (format, pieces, expected) => {
  const limits = { lineBytesMax: 12, lineEnd: lineFeed } as const
  const reader = createReader(format, Buffer.of(), limits)
  const together: string[] = []

  for await (const entries of reader.read(Readable.from(pieces.map(Buffer.from)))) {
    together.push(`${entries.map(({ line }) => line)}`)
  }

  expect(together.filter(lines => lines !== '').join(' | ')).toBe(expected)
})

test('the middle of a line that is too long is dropped', async () => {
  const chunks = ['ab\ncdef', 'ghij', 'klmn', 'op\nq', 'r'].map(Buffer.from)
  const limits = { lineBytesMax: 6, lineEnd: lineFeed } as const
  const results: string[] = []

  for await (const lines of wholeLines(Readable.from(chunks), limits)) {
    results.push(`${lines}`)
  }

  expect(results).toEqual(['ab\n', 'cdefghij\n', 'qr'])
})

test.each([
  [
    'id,tag\n',
    'does not name the column name (it must name the columns id and name, and perhaps tag): line 1 is id,tag',
  ],
  ['id,name,ID\n', 'names the column id twice: line 1 is id,name,ID'],
  [
    'id,"name\n',
    'is not CSV: a quote is opened that is never closed: line 1 is id,"name',
  ],
  [
    `id,name,id,${'x'.repeat(90)}\n`,
    `names the column id twice: line 1 is id,name,id,${'x'.repeat(89)}…`,
  ],
  [`id,name${'x'.repeat(200)}\n`, 'is too long'],
  ['id,name,\xe9\n', 'is not UTF-8'],
  ['id,name\r1,a\n', 'contains a CR without an LF: line 1 is id,name\r1,a'],
])('the CSV header %j is refused', async (header, reason) => {
  const file = Buffer.from(`${header}1,a\n`, 'latin1')

  const reading = read('csv', file, 1_000, { lineBytesMax: 200, lineEnd: lineFeed })

  await expect(reading).rejects.toThrow(new Error(`the header ${reason}`))
})

const dialects = {
  commas: 'id,name,tag\n1,a,x\n2,b,\n',
  semicolons: 'id;name;tag\n1;a;x\n2;b;\n',
  tabs: 'id\tname\ttag\n1\ta\tx\n2\tb\t\n',
  bars: 'id|name|tag\n1|a|x\n2|b|\n',
  'a header in capitals': 'ID,Name,TAG\n1,a,x\n2,b,\n',
  'blanks around separators': 'id, name, tag\n1, a, x\n2, b, \n',
  'blanks around quotes': '"id" ; "name" ; tag \n1; "a" ;"x"\n2 ;b; \n',
  'a header in quotes': '"Id";"Name";"Tag"\n1;a;x\n2;b;\n',
  'a missing last field': 'id,name,tag\n1,a,x\n2,b\n',
  'empty fields beyond the header': 'id,name,tag\n1,a,x,\n2,b,,,\n',
  'columns that no plant has': 'tags,id,,name,tag\nx,1,"",a,x\n,2,,b,\n',
  'CR alone': 'id,name,tag\r1,a,x\r2,b,',
  'CR LF': 'id,name,tag\r\n1,a,x\r\n2,b,\r\n',
}

test.each(Object.entries(dialects))(
  'CSV with %s is read, in pieces of any size',
  (_, file) =>
    expectEntries('csv', bytes(file), [
      '2 {"id":1,"name":"a","tag":"x"}',
      '3 {"id":2,"name":"b"}',
    ]),
)

test.each(
  Object.entries({
    'sep=:\nid:name:tag\n1:a:x\n': '3 {"id":1,"name":"a","tag":"x"}',
    '"sep=;"\r\nid;name\r\n1;a\r\n': '3 {"id":1,"name":"a"}',
    ',,\nid,name,tag\n,,\n1,a,x\n  \n,,': '4 {"id":1,"name":"a","tag":"x"}',
    'sep=;\n\nid;name\n;\n1;a\n': '5 {"id":1,"name":"a"}',
    'id;name\r1;"a;b\nc\rd,e"\r': '2 {"id":1,"name":"a;b\\nc\\rd,e"}',
    'id;"b\nc";name\n1;x;a\n': '3 {"id":1,"name":"a"}',
    'id,name\n1, a \n': '2 {"id":1,"name":" a "}',
    'id, name\n1, " a " \n': '2 {"id":1,"name":" a "}',
  }),
)('CSV of %j has the plant %s', (file, entry) =>
  expectEntries('csv', bytes(file), [entry]),
)

test('NDJSON whose lines end in CR alone is read', () =>
  expectEntries('ndjson', bytes('{"id":1,"name":"a"}\r{"id":2,"name":"b"}\r'), [
    '1 {"id":1,"name":"a"}',
    '2 {"id":2,"name":"b"}',
  ]))

/** Returns the file of rejects of a CSV file, and the reasons in it. */
async function rejectsOf(file: Buffer) {
  const reader = createReader('csv', file, { lineBytesMax: 1_000 })
  const lines: Buffer[] = []
  const reasons: string[] = []
  for await (const entries of reader.read(Readable.from([file]))) {
    const rejected = entries.filter(entry => 'reason' in entry)
    lines.push(...rejected.map(each => reader.rejectsLine(each)))
    // The file of rejects has two columns more.
    reasons.push(...rejected.map(({ reason }) => reason.replace(/\d+ fields.*/, '')))
  }
  return { file: Buffer.concat([reader.rejectsHead(), ...lines]), reasons }
}

test.each([
  ['faults of all kinds', csvFile],
  ['CR alone', bytes('id,name\r1\rx,"a\nb"\r')],
  ['a named separator', bytes('sep=:\r\nid:name\r\n1\r\nx:"a:b"\r\n')],
  ['semicolons in blanks', bytes('\n;\n id ; "name"\n1\nx;"a""b" \n')],
])('rejects of CSV with %s are rejected again, one by one', async (_, file) => {
  const rejects = await rejectsOf(file)

  const again = await rejectsOf(rejects.file)

  expect(rejects.reasons.length).toBeGreaterThan(1)
  expect(again.reasons).toEqual(rejects.reasons)
})

test.each(['csv', 'ndjson'] as const)(
  '%s rejects a line longer than the limit, and no other',
  async format => {
    const { header, write } = formats[format]
    const plants = [2_000, 2_001, 200_000, 1].map((length, n) =>
      longPlant(BigInt(n), length),
    )
    const lineBytesMax = Buffer.byteLength(write(plants.slice(0, 1))) - 1
    const file = Buffer.from(header + write(plants))
    for (const pieceBytes of [1, 100, lineBytesMax, file.length]) {
      const entries = await read(format, file, pieceBytes, { lineBytesMax })

      const kept = entries.map(entry => ('item' in entry ? entry.item : undefined))
      expect(kept, `in pieces of ${pieceBytes}`).toEqual([
        plants[0],
        undefined,
        undefined,
        plants[3],
      ])
      const [, , endless] = entries.map(inWords)
      const start = write(plants.slice(2, 3)).slice(0, 1_024)
      expect(endless, `in pieces of ${pieceBytes}`).toBe(
        `${entries[2]?.line} the line is longer than ${lineBytesMax} bytes, of which these are the first: ${start}`,
      )
      const keptBytes = entries[2]?.raw.buffer.byteLength
      expect(keptBytes, 'memory of the endless line').toBeLessThan(100_000)
    }
  },
)

test.each([
  [' \n\t{"id":1}', undefined, 'ndjson'],
  ['', undefined, 'ndjson'],
  ['id,name', undefined, 'csv'],
  ['id,name', 'ndjson', 'ndjson'],
  ['[', 'csv', 'csv'],
  // A first line that was cut does not stop an import.
  ['{"id":1,"name":"cu\n{"id":2,"name":"b"}\n', undefined, 'ndjson'],
] as const)('%j, said to be %s, is %s', (beginning, named, expected) => {
  const format = detectFormat(Buffer.from(beginning), 'plants', named)

  expect(format).toBe(expected)
})

test.each([
  [' [1]', 'a JSON array', "jq -c '.[]'"],
  ['{"id": 1,\r\n "name": "a"}\r\n', 'an object on several lines', "jq -c '.'"],
])('%j is refused, with advice', (beginning, what, advice) => {
  const detect = () => detectFormat(Buffer.from(beginning), 'plants')

  const message = `plants: must have one JSON object on each line, not ${what}: convert it with ${advice} (1.7 or later: earlier versions round ids)`
  expect(detect).toThrow(expect.objectContaining({ message }))
})

test.each([
  ['-', undefined, 'ndjson'],
  ['to/Plants.CSV', undefined, 'csv'],
  ['plants.csv', 'ndjson', 'ndjson'],
] as const)('the format of %s, said to be %s, is %s', (file, named, expected) => {
  expect(formatToWrite(file, named)).toBe(expected)
})

test.each(['plants.csv.gz', 'PLANTS.ZIP', 'plants.tsv'])('%s is not written', file => {
  const write = () => formatToWrite(file, 'csv')

  const ending = file.slice(file.lastIndexOf('.'))
  const message = `${file}: export writes NDJSON or CSV, and compresses neither: pipe its output to a program that writes ${ending}`
  expect(write).toThrow(expect.objectContaining({ message, exitCode: 2 }))
})
