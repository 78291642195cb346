import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createClient } from '@plant-store/http/testing'
import { describe, expect, test } from 'vitest'

/**
 * A server that sends the given pieces as soon as somebody connects, each in a packet of
 * its own, and then ends.
 */
async function sends(...pieces: readonly string[]) {
  const server = createServer({ noDelay: true }, async (socket: Socket) => {
    socket.on('error', () => {})
    for (const piece of pieces) {
      await new Promise(written => socket.write(piece, written))
    }
    socket.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const checked: unknown[] = []
  const tokens = { full: '', readOnly: '', writeOnly: '', expired: '', metrics: '' }
  const client = createClient({ url, tokens }, { check: asked => checked.push(asked) })
  const wire = await client.open()
  return {
    wire,
    checked,
    [Symbol.dispose]: () => [wire[Symbol.dispose](), server.close()],
  }
}

const get = { method: 'GET', target: '/' }

describe('a wire', () => {
  const first =
    'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Y: a\r\nx-y:  b \r\n\r\n\r\n\r\n'
  const second = 'HTTP/1.1 400 Bad Request\r\ncontent-length: 1\r\n\r\n!'

  test.for([
    [first + second],
    [...first, ...second],
    [`${first}HTTP/1.1 4`, second.slice(10)],
  ])('reads one answer after the other, however cut: %#', async pieces => {
    using server = await sends(...pieces)

    const answer = await server.wire.answer(get)
    const next = await server.wire.answer(undefined)

    expect(answer).toMatchObject({ status: 200, body: Buffer.from('\r\n\r\n') })
    expect(answer.headers.get('x-y')).toBe('a, b')
    expect(next).toMatchObject({ status: 400, body: Buffer.from('!'), interim: [] })
    expect(server.checked).toEqual([get, undefined])
    expect((await server.wire.closed()).length).toBe(0)
  })

  test.each([
    ['HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc', /ended before 5 bytes/],
    ['HTTP/1.0 OK\r\n\r\n', /not the status line/],
    ['HTTP/1.1 200 OK\r\nno colon\r\n\r\n', /not a header field/],
  ])('takes %j for no answer', async (bytes, fault) => {
    using server = await sends(bytes)
    await expect(server.wire.answer(get)).rejects.toThrow(fault)
  })
})
