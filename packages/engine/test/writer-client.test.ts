import { once } from 'node:events'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import type { Change } from '@plant-store/engine'
import { expect, test } from 'vitest'
import type { WriterAnswer } from '../src/sqlite/writer.ts'
import { connectToWriter } from '../src/sqlite/writer-client.ts'

const groupOf = (...names: string[]) =>
  names.map((name): Change => ['notes.insert', name])

const full = {
  message: 'the store could not write the change',
  cause: { message: 'the disk is full' },
}

test('answers settle groups in order, whatever else the writer says', async () => {
  const { port1: port, port2: far } = new MessageChannel()
  const reports: unknown[] = []
  const writer = connectToWriter(port, {
    onCommit: ({ changes }) => reports.push(changes),
    onCheckpointFailure: reason => reports.push(reason),
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
  const sent = groups.map(() => receiveMessageOnPort(far)?.message)
  for (const answer of answers) {
    far.postMessage(answer)
  }

  expect(sent).toEqual(groups)
  expect(await outcomes).toMatchObject([
    { value: [1, 0] },
    { reason: full },
    { value: [1] },
  ])
  await expect.poll(() => reports).toEqual([2, 'the disk fails', undefined])
  // An open port would keep the thread alive.
  const closed = once(far, 'close')
  writer.close()
  await closed
})

test('changes during an outage are refused with its reason', async () => {
  const { port1: port, port2: far } = new MessageChannel()
  const writer = connectToWriter(port)
  const reports: unknown[] = []
  writer.watchFailures(error => reports.push(error))
  const answer = async (sent: WriterAnswer) => {
    far.postMessage(sent)
    await once(port, 'message')
  }

  await answer({ blockedBecause: 'the disk is full' })
  expect(writer.blockedBecause()).toBe('the disk is full')
  expect(reports).toMatchObject([full])
  await expect(writer.send(groupOf('a'))).rejects.toMatchObject(full)

  await answer({ blockedBecause: undefined })
  const outcome = writer.send(groupOf('b'))
  expect(receiveMessageOnPort(far)?.message, 'after it').toEqual(groupOf('b'))
  await answer({ affectedRows: [1] })
  expect(await outcome).toEqual([1])
  expect(reports).toHaveLength(1)
  writer.close()
})
