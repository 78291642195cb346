import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { rawPost, start, token } from './ask.ts'

const idle = 95
const clients = 32
const requestsEach = 10

test('clients that reconnect beside many idle connections are answered', async () => {
  await using program = await start({ HTTP_THREADS: '2', MAX_CONNECTIONS: '100' })
  const port = Number(new URL(program.url).port)
  const open = async () => {
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    return socket
  }
  await Promise.all(Array.from({ length: idle }, open))

  let id = 0
  const outcomes = new Map<string, number>()
  const client = async () => {
    for (let n = 0; n < requestsEach; n++) {
      const outcome = await outcomeOf(connect(port, '127.0.0.1'), ++id)
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  const { 200: created = 0, 503: refused = 0, ...others } = Object.fromEntries(outcomes)
  expect(others).toEqual({})
  expect(created + refused).toBe(clients * requestsEach)
  expect(created).toBeGreaterThan(0)
  expect(refused).toBeGreaterThan(0)
  expect(await program.end()).toBe(0)
})

/**
 * Resolves to the status of a create that is sent on the connection, or to the code of
 * its error.
 */
async function outcomeOf(socket: Socket, id: number): Promise<string> {
  let answer = ''
  socket.setEncoding('latin1').on('data', text => {
    answer += text
    // The server keeps a connection open that it has served.
    if (answer.startsWith('HTTP/1.1 200 ')) {
      socket.end()
    }
  })
  socket.write(rawPost(token, `{"id":${id},"name":"n"}`))
  return once(socket, 'end').then(
    () => answer.split(' ')[1] ?? 'no answer',
    error => error.code,
  )
}
