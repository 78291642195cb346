import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import { type Plant, parsePlant } from '@plant-store/domain'
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

/**
 * Reads a file that arrives in pieces: each line with its plant, or with its fault and
 * what it was.
 */
async function read(
  format: FormatName,
  file: Buffer,
  pieceBytes: number,
  limits: Partial<LineReading> = {},
) {
  async function* pieces() {
    for (let start = 0; start < file.length; start += pieceBytes) {
      yield file.subarray(start, start + pieceBytes)
    }
  }
  const reading = {
    ...plantReading,
    lineBytesMax: lineBytesMaxDefault,
    lineEnd: lineEndOf(file),
    ...limits,
  }
  const results: unknown[][] = []
  for await (const entries of formats[format].createReader(reading).read(pieces())) {
    results.push(...entries.map(resultOf))
  }
  return results
}

function resultOf(entry: Entry): unknown[] {
  const { line, raw } = entry
  if (!('reason' in entry)) {
    return [line, entry.item]
  }
  const isTooLong = entry.reason.includes('of which')
  const keptBytes = isTooLong ? raw.buffer.byteLength : 0
  expect(keptBytes, 'memory of a line that is too long').toBeLessThan(100_000)
  return [line, entry.reason, textOf(raw)]
}

const plantsOf = (results: unknown[][]) => results.map(([, plant]) => plant)
const linesOf = (results: unknown[][]) => results.map(([line]) => line)

/** One character for each byte that is not part of a text. */
const textOf = (raw: Buffer) => raw.toString(isUtf8(raw) ? 'utf8' : 'latin1')

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
    const plants = [...anyPlants(1, 200), ...eachPiece.slice(0, -1)]
    const { header, write } = formats[format]
    const file = Buffer.from(header + write(plants))
    const firstLines = plants.map((_, n) => {
      const before = header + write(plants.slice(0, n))
      return before.split('\n').length
    })
    for (const pieceBytes of [1, 2, 3, 7, 64, 1_000, file.length]) {
      const results = await read(format, file, pieceBytes)

      expect(plantsOf(results), `in pieces of ${pieceBytes}`).toEqual(plants)
      expect(linesOf(results), `in pieces of ${pieceBytes}`).toEqual(firstLines)
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
const longestBytes = 40

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
      for (const lineBytesMax of [lineBytesMaxDefault, longestBytes]) {
        const results = await read(format, file, pieceBytes, { lineBytesMax })

        expect(results, `in pieces of ${pieceBytes}`).toEqual(entries)
      }
    }
  },
)

test('a CSV record that is too long spoils its first line only', async () => {
  const file = bytes('id,name\n1,"two\n2,short\nor\nlines"\n3,"a\nb"\n')
  for (let pieceBytes = 1; pieceBytes <= file.length; pieceBytes++) {
    const results = await read('csv', file, pieceBytes, { lineBytesMax: 10 })

    expect(results, `in pieces of ${pieceBytes}`).toEqual([
      [2, 'the record is longer than 10 bytes, or a quote is never closed', '1,"two'],
      [3, { id: 2n, name: 'short' }],
      [4, expect.stringMatching(/^id must be an integer .*; name is required$/), 'or'],
      [5, 'there is a quote in a field that does not begin with one', 'lines"'],
      [6, { id: 3n, name: 'a\nb' }],
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
  const reading = { ...plantReading, lineBytesMax: 12, lineEnd: lineFeed } as const
  const linesTogether: number[][] = []
  const reader = formats[format].createReader(reading)
  for await (const entries of reader.read(arriving())) {
    if (entries.length > 0) {
      linesTogether.push(entries.map(({ line }) => line))
    }
  }
  expect(linesTogether).toEqual(expected)
})

test('the middle of a line that is too long is dropped', async () => {
  async function* chunks() {
    for (const chunk of ['ab\ncdef', 'ghij', 'klmn', 'op\nq', 'r']) {
      yield Buffer.from(chunk)
    }
  }
  const limits = { lineBytesMax: 6, lineEnd: lineFeed } as const
  const results: string[] = []
  for await (const lines of wholeLines(chunks(), limits)) {
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
  [`id,name${'x'.repeat(100)}\n`, 'is too long'],
  ['id,name,\xe9\n', 'is not UTF-8'],
  ['id,name\r1,a\n', 'contains a CR without an LF: line 1 is id,name\r1,a'],
])('the CSV header %j is refused', async (header, reason) => {
  const file = Buffer.from(`${header}1,a\n`, 'latin1')

  const reading = read('csv', file, 1_000, { lineBytesMax: 100, lineEnd: lineFeed })

  await expect(reading).rejects.toThrow(new Error(`the header ${reason}`))
})

test.each([
  ['commas', 'id,name,tag\n1,a,x\n2,b,\n'],
  ['semicolons', 'id;name;tag\n1;a;x\n2;b;\n'],
  ['tabs', 'id\tname\ttag\n1\ta\tx\n2\tb\t\n'],
  ['bars', 'id|name|tag\n1|a|x\n2|b|\n'],
  ['a named separator', 'sep=:\nid:name:tag\n1:a:x\n2:b:\n'],
  ['sep= in quotes', '"sep=;"\r\nid;name;tag\r\n1;a;x\r\n2;b;\r\n'],
  ['a header in capitals', 'ID,Name,TAG\n1,a,x\n2,b,\n'],
  ['blanks around separators', 'id, name, tag\n1, a, x\n2, b, \n'],
  ['blanks around quotes', '"id" ; "name" ; tag \n1; "a" ;"x"\n 2 ;b; \n'],
  ['a header in quotes', '"Id";"Name";"Tag"\n1;a;x\n2;b;\n'],
  ['a missing last field', 'id,name,tag\n1,a,x\n2,b\n'],
  ['empty fields beyond the header', 'id,name,tag\n1,a,x,\n2,b,,,\n'],
  ['rows without content', ',,\nid,name,tag\n,,\n1,a,x\n  \n2,b,\n,,'],
  ['CR alone', 'id,name,tag\r1,a,x\r2,b,'],
  ['CR LF', 'id,name,tag\r\n1,a,x\r\n2,b,\r\n'],
])('CSV with %s is read, in pieces of any size', async (_, file) => {
  const content = bytes(file)
  const plants = [
    { id: 1n, name: 'a', tag: 'x' },
    { id: 2n, name: 'b' },
  ]
  for (let pieceBytes = 1; pieceBytes <= content.length; pieceBytes++) {
    const results = await read('csv', content, pieceBytes)

    expect(plantsOf(results), `in pieces of ${pieceBytes}`).toEqual(plants)
  }
})

test('a CSV row is numbered as an editor does, after what is skipped', async () => {
  const file = bytes('sep=;\n\nid;name\n;\n1;a\nx;b\n')

  const results = await read('csv', file, 1_000)

  expect(linesOf(results)).toEqual([5, 6])
})

test.each([
  ['id;name\r1;"a;b\nc\rd,e"\r', 'a;b\nc\rd,e'],
  ['id,name\n1, a \n', ' a '],
  ['id, name\n1, " a " \n', ' a '],
])('CSV of %j has the name %j', async (file, name) => {
  const results = await read('csv', bytes(file), 1_000)

  expect(plantsOf(results)).toEqual([{ id: 1n, name }])
})

/** Returns the file of rejects of a CSV file, and the reasons in it. */
async function rejectsOf(file: Buffer) {
  const reading = { ...plantReading, lineBytesMax: 1_000, lineEnd: lineEndOf(file) }
  const reader = formats.csv.createReader(reading)
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
  { what: 'faults of all kinds', file: csvFile },
  { what: 'CR alone', file: bytes('id,name\r1\rx,"a\nb"\r') },
  { what: 'a named separator', file: bytes('sep=:\r\nid:name\r\n1\r\nx:"a:b"\r\n') },
  { what: 'semicolons in blanks', file: bytes('\n;\n id ; "name"\n1\nx;"a""b" \n') },
])('rejects of CSV with $what are rejected again, one by one', async ({ file }) => {
  const rejects = await rejectsOf(file)

  const again = await rejectsOf(rejects.file)

  expect(rejects.reasons.length).toBeGreaterThan(1)
  expect(again.reasons).toEqual(rejects.reasons)
})

test('NDJSON whose lines end in CR alone is read', async () => {
  const file = bytes('{"id":1,"name":"a"}\r{"id":2,"name":"b"}\r')

  const results = await read('ndjson', file, 7)

  expect(results).toEqual([
    [1, { id: 1n, name: 'a' }],
    [2, { id: 2n, name: 'b' }],
  ])
})

test('columns of CSV that no plant has are ignored, as are members of JSON', async () => {
  const plant = { id: 1n, name: 'a' }
  const csv = bytes('tags,id,,name\nx,1,"",a\nx,2,b\n')
  expect(await read('csv', csv, 1_000)).toEqual([
    [2, plant],
    [3, 'name is required', 'x,2,b'],
  ])
  const ndjson = bytes('{"tags":"x","id":1,"":"","name":"a"}\n')
  expect(await read('ndjson', ndjson, 1_000)).toEqual([[1, plant]])
})

test.each(['csv', 'ndjson'] as const)(
  '%s rejects a line longer than the limit, and no other',
  async format => {
    const { header, write } = formats[format]
    const [longest, longer, endless, short] = [1_000, 1_001, 200_000, 1].map(
      (length, n) => parsePlant({ id: BigInt(n), name: 'é'.repeat(length) }),
    ) as [Plant, Plant, Plant, Plant]
    const file = Buffer.from(header + write([longest, longer, endless, short]))
    const lineBytesMax = Buffer.byteLength(write([longest])) - 1
    const rejected = expect.stringContaining(
      `longer than ${lineBytesMax} bytes, of which`,
    )
    const start = textOf(Buffer.from(write([endless])).subarray(0, 1_024))
    for (const pieceBytes of [1, 100, lineBytesMax, file.length]) {
      const results = await read(format, file, pieceBytes, { lineBytesMax })

      expect(plantsOf(results), `in pieces of ${pieceBytes}`).toEqual([
        longest,
        rejected,
        rejected,
        short,
      ])
      expect(results[2]?.[2], `in pieces of ${pieceBytes}`).toBe(start)
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
