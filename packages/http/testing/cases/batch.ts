import assert from 'node:assert/strict'
import {
  assertAbsent,
  assertAllKept,
  assertFailure,
  assertKept,
  create,
  free,
} from '../assertions.ts'
import {
  type AskOptions,
  bareRequest,
  type Client,
  chunk,
  hostAndToken,
} from '../client.ts'
import {
  type ContractCase,
  casesForEach,
  casesOf,
  longestPlant,
  ownId,
  type PlantSent,
} from '../contract-case.ts'
import { jsonOf, toJson } from '../exact-json.ts'
import type { Answer } from '../wire.ts'

const ndjson = 'content-type: application/x-ndjson'

export function postLines(
  client: Client,
  body: string | Uint8Array,
  options: AskOptions = {},
) {
  const headers = { 'content-type': 'application/x-ndjson', ...options.headers }
  return client.ask('POST', '/plants/batch', { ...options, body, headers })
}

/** Posts lines with these header fields, on a connection of its own. */
function postLinesBare(
  client: Client,
  body: string,
  ...fields: readonly string[]
): Promise<Answer> {
  return client.askBare('POST /plants/batch', [ndjson, ...fields], body)
}

function named(...names: readonly string[]): readonly PlantSent[] {
  return names.map(name => ({ id: ownId(), name }))
}
const linesOf = (plants: readonly object[]) =>
  plants.map(plant => `${toJson(plant)}\n`).join('')

interface Counted {
  readonly created?: bigint
  readonly existing?: bigint
  readonly refused?: bigint
  /** The errors of the refused lines. */
  readonly faults?: Readonly<Record<number, number>>
}

/** Returns the messages of the faults. */
export function assertCounts(
  answer: Answer,
  { faults = {}, ...counts }: Counted,
): readonly string[] {
  assert.equal(answer.status, 200, `${answer.body}`)
  const { faults: given, ...counted } = jsonOf(answer) as Record<string, bigint> & {
    faults: { line: bigint; error: bigint; message: string }[]
  }
  assert.deepEqual(counted, { created: 0n, existing: 0n, refused: 0n, ...counts })
  const found = given.map(({ line, error }) => [`${line}`, Number(error)])
  assert.deepEqual(found, Object.entries(faults))
  return given.map(({ message }) => message)
}

export const batchCases: readonly ContractCase[] = [
  ...casesOf('POST /plants/batch', {
    'counts what is new, what was there to the letter, and what is refused':
      async client => {
        const known = { id: ownId(), name: 'known', tag: 't' }
        const fresh = ownId()
        const greatest = { id: 2n ** 63n - 1n, name: 'greatest' }
        await free(client, [greatest.id])
        await create(client, known)
        const plants = [
          { id: fresh, name: 'fresh' },
          { ...known, ignored: 1 },
          { ...known, tag: '' },
          greatest,
        ]
        const body = `${linesOf(plants)}${linesOf([{ id: 2n ** 63n, name: 5 }])}`
        const answer = await postLines(client, body)
        const faults = { 3: 40003, 5: 40002 }
        const messages = assertCounts(answer, {
          created: 2n,
          existing: 1n,
          refused: 2n,
          faults,
        })
        const problem =
          'id must be an integer from -9223372036854775808 to 9223372036854775807'
        assert.deepEqual(messages, [
          `id ${known.id} is already taken`,
          `${problem}; name must be a string`,
        ])
        assert.equal(answer.headers.get('content-type'), 'application/json')
        await assertAllKept(client, [known, greatest, { id: fresh, name: 'fresh' }])
        assertCounts(await postLines(client, body), { existing: 3n, refused: 2n, faults })
        await free(client, [greatest.id])
      },

    'creates the first of several plants with one id, however far apart':
      async client => {
        const plant = { id: ownId(), name: 'first' }
        const between = Array.from({ length: 1_200 }, () => ({
          id: ownId(),
          name: 'between',
        }))
        const body = linesOf([
          plant,
          { ...plant, name: 'second' },
          ...between,
          plant,
          { ...plant, tag: 't' },
        ])
        const faults = { 2: 40003, 1204: 40003 }
        assertCounts(await postLines(client, body), {
          created: 1_201n,
          existing: 1n,
          refused: 2n,
          faults,
        })
        await assertKept(client, plant)
      },

    'lists the first hundred refused lines in order, and counts all': async client => {
      const taken = { id: ownId(), name: 'taken' }
      await create(client, taken)
      const lines = Array.from({ length: 500 }, (_, n) => [
        { ...taken, name: `${n}` },
        { id: 'x' },
      ]).flat()
      const faults = Object.fromEntries(
        Array.from({ length: 100 }, (_, n) => [n + 1, n % 2 === 0 ? 40003 : 40002]),
      )
      assertCounts(await postLines(client, linesOf(lines)), { refused: 1_000n, faults })
    },
  }),

  ...casesForEach(
    'lines',
    ['', '\n', '\n\n\r\n\r\n'],
    body => `may all be empty: ${JSON.stringify(body)}`,
    async (client, body) => void assertCounts(await postLines(client, body), {}),
  ),

  ...casesForEach(
    'lines',
    ['', '\n', '\r\n'],
    end => `are as long as a body may be, before the end ${JSON.stringify(end)}`,
    async (client, end) => {
      const body = `${toJson(longestPlant(client))}${end}`
      assertCounts(await postLines(client, body), { created: 1n })
    },
  ),

  ...casesOf('lines', {
    'may be none without a media type': async client => {
      assertCounts(await client.askBare('POST /plants/batch', ['content-length: 0']), {})
    },

    'that are empty are ignored but counted': async client => {
      const [a, b] = [ownId(), ownId()]
      const body = `\n{"id":${a},"name":"a"}\n\n\r\n{"id":${b},"name":"b"}\r\n\n5`
      assertCounts(await postLines(client, body), {
        created: 2n,
        refused: 1n,
        faults: { 7: 40002 },
      })
    },

    'are judged one by one': async client => {
      const id = ownId()
      const good = (n: number) => Buffer.from(`{"id":${ownId()},"name":"good ${n}"}`)
      const bad = [
        '\ufeff',
        ' ',
        'null',
        `{"id":${id},"name":"n"}{"id":${id},"name":"n"}`,
        Buffer.from(`{"id":${id},"name":"caf\xe9"}`, 'latin1'),
        `{"${'x'.repeat(10_000)}":1,"${'x'.repeat(10_000)}":2}`,
      ]
      const newline = Buffer.from('\n')
      const body = bad.flatMap((line, n) => [
        Buffer.from(line),
        newline,
        good(n),
        newline,
      ])
      const bytes = Buffer.concat(body)
      const faults = { 1: 40001, 3: 40001, 5: 40002, 7: 40001, 9: 40001, 11: 40001 }
      const messages = assertCounts(await postLines(client, bytes), {
        created: 6n,
        refused: 6n,
        faults,
      })
      assert.match(messages[4] as string, /^the line .*UTF-8/)
      // A fault may quote its line, but not all of it.
      const longest = Math.max(...messages.map(message => message.length))
      assert.ok(longest <= 300, `a message has ${longest} characters`)
      await assertAbsent(client, id)
    },

    'that curl has joined are refused, with the option that keeps them': async client => {
      const joined = named('a', 'b')
        .map(plant => toJson(plant))
        .join('')
      const { bodyBytesMax } = client.store
      const long = joined.repeat(bodyBytesMax / joined.length + 1)

      const short = assertCounts(await postLines(client, joined), {
        refused: 1n,
        faults: { 1: 40001 },
      })

      assert.match(`${short[0]}`, /several plants.*--data-binary/)
      assertFailure(await postLines(client, long), 41301, /--data-binary/)
    },

    'may be cut anywhere, also in the middle of a character': async client => {
      const plants = named('🌱', 'é')
      const bytes = [...Buffer.from(linesOf(plants))]
      const chunks = bytes.flatMap(byte => ['1\r\n', Buffer.of(byte), '\r\n'])
      const asked = client.asked('POST /plants/batch')
      const fields = [...hostAndToken(client), ndjson, 'transfer-encoding: chunked']

      const answer = await client.exchange(
        asked,
        bareRequest(asked, fields),
        ...chunks,
        chunk(''),
      )

      assertCounts(answer, { created: 2n })
      await assertAllKept(client, plants)
    },

    'get 413 from one byte more than a body may have': async client => {
      const tooLong = ` ${toJson(longestPlant(client))}`
      const body = `${toJson({ id: ownId(), name: 'n' })}\n${tooLong}\n`
      const known = await postLinesBare(client, body, `content-length: ${body.length}`)
      const chunks = await postLinesBare(
        client,
        `${chunk(body)}${chunk('')}`,
        'transfer-encoding: chunked',
      )
      // The rest never arrives.
      const endless = await postLinesBare(
        client,
        chunk(`${body.trimEnd()} `),
        'transfer-encoding: chunked',
      )
      assertFailure(known, 41301, 'line')
      assertFailure(chunks, 41301, 'line')
      assertFailure(endless, 41301, 'line')
      assert.equal(endless.headers.get('connection'), 'close')
    },
  }),

  ...casesOf('a batch around its lines', {
    'must be application/x-ndjson in UTF-8': async client => {
      const post = (type: string) =>
        postLines(client, linesOf(named('n')), { headers: { 'content-type': type } })
      assertFailure(await post('application/json'), 41501, 'application/x-ndjson')
      assertFailure(await post('application/x-ndjson; charset=latin1'), 41501, 'UTF-8')
      assertFailure(
        await client.askBare('POST /plants/batch', ['content-length: 2'], '{}'),
        41501,
      )
      const inUpperCase = await post('Application/X-NDJSON')
      const withCharset = await post('application/x-ndjson; charset=UTF-8')
      assertCounts(inUpperCase, { created: 1n })
      assertCounts(withCharset, { created: 1n })
      // Other operations do not take it.
      const headers = { 'content-type': 'application/x-ndjson' }
      assertFailure(
        await client.ask('POST', '/plants', { body: linesOf(named('n')), headers }),
        41501,
      )
    },

    'is asked for with 100 Continue, whatever its length': async client => {
      const asked = client.asked('POST /plants/batch')
      const plant = toJson({ id: ownId(), name: 'n' })
      const length = client.store.bodyBytesMax + 1
      const fields = [
        ...hostAndToken(client),
        ndjson,
        'expect: 100-continue',
        `content-length: ${length}`,
      ]
      using wire = await client.open()
      wire.send(bareRequest(asked, fields))
      assert.equal(await wire.interim(), 100)
      wire.send(`${plant}${'\n'.repeat(length - plant.length)}`)
      assertCounts(await wire.answer(asked), { created: 1n })
    },
  }),
]
