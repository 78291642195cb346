import { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Connections } from '../src/connection/connections.ts'

/** Connections whose sockets only remember whether they are read. */
function open(count: number) {
  const all = new Connections(() => {})
  return Array.from({ length: count }, () => {
    let isPaused = false
    const socket = new Socket()
    socket.isPaused = () => isPaused
    socket.pause = () => {
      isPaused = true
      return socket
    }
    socket.resume = () => {
      isPaused = false
      return socket
    }
    return all.add(socket)
  })
}

test('of many connections that sent much two are read on in a turn', async () => {
  const connections = open(9)
  for (const connection of connections) {
    connection.note(20_000)
    connection.resumeOrPause()
  }
  await Promise.resolve()
  const read = () => connections.filter(({ socket }) => !socket.isPaused()).length
  expect(read()).toBe(0)
  for (const count of [2, 4, 6, 8, 9]) {
    await nextTurn()
    expect(read()).toBe(count)
  }
})

test('beyond two nobody else is read in the same turn', async () => {
  const connections = open(4)
  const other = connections[3] as (typeof connections)[number]
  for (const [n, connection] of connections.slice(0, 3).entries()) {
    connection.note(20_000)
    expect(other.socket.isPaused()).toBe(n === 2)
  }
  await nextTurn()
  expect(other.socket.isPaused()).toBe(false)
})

test('a connection waits after 16 KiB, or as many chunks or requests as make it slow', () => {
  for (const [bytes, count] of [
    [16 * 1024 - 64, 1],
    [0, 256],
  ] as const) {
    const [connection] = open(1)
    for (let n = 0; n < count; n++) connection?.note(bytes)
    expect(connection?.waitsForTurn).toBe(false)
    connection?.note(0)
    expect(connection?.waitsForTurn).toBe(true)
  }
})
