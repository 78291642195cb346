import { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Connections } from '../src/connection/connections.ts'

test('of many connections that sent much two are read on in a turn, in their order', async () => {
  // Sockets that only remember whether they are read.
  const isRead = new Set<Socket | undefined>()
  const all = new Connections(() => {})
  const connections = Array.from({ length: 9 }, () => {
    const socket = new Socket()
    socket.resume = () => isRead.add(socket) && socket
    socket.pause = () => Object.assign(socket, isRead.delete(socket) && {})
    return all.add(socket)
  })
  const read = async () => {
    await Promise.resolve()
    return [...connections.keys()].filter(n => isRead.has(connections[n]?.socket))
  }
  for (const connection of connections) {
    connection.note(20_000)
  }
  expect(await read()).toEqual([])
  for (const count of [2, 4, 6, 8, 9]) {
    await nextTurn()
    expect(await read()).toEqual([...connections.keys()].slice(0, count))
  }
})
