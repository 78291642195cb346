import { expect, test } from 'vitest'
import { ask, start } from './ask.ts'

interface RequestLine {
  readonly msg: string
  readonly method: string
  readonly status: number
  readonly client?: string
  readonly plantId?: string
  readonly error?: number
}

async function startLogged(environment: Record<string, string> = {}) {
  const program = await start(environment)
  return {
    ask: (target: string, headers: Record<string, string> = {}, body: string | null = null) =>
      ask(program, target, { headers, body }),
    /** Ends the program, which writes the rest of its log. */
    async lines(): Promise<RequestLine[]> {
      await program.end('SIGTERM')
      const log = program.log as unknown as RequestLine[]
      return log.filter(({ msg }) => msg === 'answered')
    },
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  }
}

test('the line of a request names the client that a trusted proxy names', async () => {
  await using program = await startLogged({ TRUST_PROXY: '127.0.0.1' })
  await program.ask('GET /plants', { 'x-forwarded-for': '203.0.113.7' })
  await program.ask('GET /plants', { 'x-forwarded-for': '203.0.113.8', authorization: 'Bearer wrong' })
  await program.ask('GET /healthz')
  expect((await program.lines()).map(({ status, client }) => [status, client])).toEqual([
    [200, '203.0.113.7'],
    [401, '203.0.113.8'],
    [200, '127.0.0.1'],
  ])
})

test('the line of a request names its plant to the last digit, the number of a failure and the address of the connection', async () => {
  await using program = await startLogged()
  const id = '9223372036854775807'
  await program.ask('POST /plants', {}, `{"id": ${id}, "name": "a"}`)
  await program.ask('POST /plants', {}, `{"id": ${id}, "name": "a"}`)
  await program.ask('POST /plants', {}, `{"id": ${id}0, "name": "a"}`)
  await program.ask(`GET /plants/${id}`)
  await program.ask('PUT /plants/-1', {}, '{"name": "a"}')
  await program.ask('DELETE /plants/0')
  await program.ask('DELETE /plants/x')
  await program.ask('GET /plants')
  const forged = { 'x-forwarded-for': '203.0.113.7' }
  await program.ask('GET /plants', forged)
  await program.ask('GET /plants', { ...forged, authorization: 'Bearer wrong' })
  await program.ask('GET /nowhere', { ...forged, authorization: '' })
  const lines = await program.lines()
  expect(lines.map(({ method, status, error, plantId }) => [method, status, error, plantId])).toEqual([
    ['POST', 200, undefined, id],
    ['POST', 400, 40003, id],
    ['POST', 400, 40002, undefined],
    ['GET', 200, undefined, id],
    ['PUT', 200, undefined, '-1'],
    ['DELETE', 404, 40402, '0'],
    ['DELETE', 400, 40004, undefined],
    ['GET', 200, undefined, undefined],
    ['GET', 200, undefined, undefined],
    ['GET', 401, 40102, undefined],
    ['GET', 401, 40101, undefined],
  ])
  expect(new Set(lines.map(({ client }) => client))).toEqual(new Set(['127.0.0.1']))
})
