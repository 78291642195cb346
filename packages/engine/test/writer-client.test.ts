import { once } from 'node:events'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import type { Change } from '@plant-store/engine'
import { expect, test } from 'vitest'
import type { WriterAnswer } from '../src/sqlite/writer.ts'
import { connectToWriter } from '../src/sqlite/writer-client.ts'

const groupOf = (...names: string[]) =>
  names.map((name): Change => ['notes.insert', name])

test('answers settle groups in their order, between whatever else the writer says', async () => {
  const { port1: port, port2: far } = new MessageChannel()
  const seen: unknown[] = []
  const writer = connectToWriter(port, {
    onCommit: ({ changes }) => seen.push(changes),
    onCheckpointFailure: reason => seen.push(reason),
  })
  const answers: WriterAnswer[] = [
    { affectedRows: [1, 0], commit: { changes: 2, ms: 0 } },
    { checkpointFailure: 'the disk fails' },
    { reason: 'the disk is full' },
    { blockedBecause: undefined },
    { affectedRows: [1] },
    { checkpointFailure: undefined },
  ]
  const groups = [groupOf('a', 'b'), groupOf('c', 'd'), groupOf('e')]
  const outcomes = Promise.allSettled(groups.map(writer.send))
  expect(groups.map(() => receiveMessageOnPort(far)?.message)).toEqual(groups)
  for (const answer of answers) {
    far.postMessage(answer)
  }
  const full = {
    message: 'the store could not write the change',
    cause: { message: 'the disk is full' },
  }
  expect(await outcomes).toMatchObject([
    { value: [1, 0] },
    { reason: full },
    { value: [1] },
  ])
  await expect.poll(() => seen).toEqual([2, 'the disk fails', undefined])
  const closed = once(far, 'close')
  // So that the thread can end.
  writer.close()
  await closed
})

test('a change during an outage is refused with its reason, and reaches the writer once it is over', async () => {
  const { port1: port, port2: far } = new MessageChannel()
  const writer = connectToWriter(port)
  const reported: unknown[] = []
  writer.onFailure(error => reported.push(error))
  const say = async (answer: WriterAnswer) => {
    far.postMessage(answer)
    await once(port, 'message')
  }
  await say({ blockedBecause: 'the disk fails' })
  expect(writer.blockedBecause()).toBe('the disk fails')
  const failing = {
    message: 'the store could not write the change',
    cause: { message: 'the disk fails' },
  }
  expect(reported).toMatchObject([failing])
  await expect(writer.send(groupOf('a'))).rejects.toMatchObject(failing)
  await say({ blockedBecause: undefined })
  const sent = writer.send(groupOf('b'))
  expect(receiveMessageOnPort(far)?.message).toEqual(groupOf('b'))
  await say({ affectedRows: [1] })
  expect(await sent).toEqual([1])
  expect(reported).toHaveLength(1)
  writer.close()
})
