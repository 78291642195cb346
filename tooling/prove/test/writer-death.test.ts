import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startServer, temporaryFolder } from '@plant-store/harness'
import { expect, test } from 'vitest'
import { History } from '../src/history.ts'
import { readStore } from '../src/kill.ts'
import { recorded } from '../src/operations.ts'
import { startProgram } from '../src/program.ts'

const preload = fileURLToPath(new URL('../breaks/writer-dies.ts', import.meta.url))

test('a defect in the writer thread ends the program, and loses no answer', async () => {
  using folder = temporaryFolder()
  const databaseUrl = `file:${join(folder.path, 'plants.db')}`
  const history = new History()
  {
    await using program = await startProgram({
      databaseUrl,
      preload,
    })
    const act = recorded(program.operations, history)
    const wellUnderWay = Promise.withResolvers<void>()
    let lastId = 0n
    const work = async () => {
      // The cut of the connection ends this, because its last change is then unknown.
      for (;;) {
        lastId += 1n
        const { is } = await act('create', lastId, { name: `${lastId}` })
        if (is === 'unknown') {
          return
        }
        if (history.counts.done >= 50) {
          wellUnderWay.resolve()
        }
      }
    }
    const working = Array.from({ length: 8 }, work)
    await wellUnderWay.promise
    expect(await program.end('SIGUSR2')).toBe(1)
    await Promise.all(working)
    expect(program.errors()).toBe('')
    expect(program.warnings()).toMatchObject([
      {
        level: 'fatal',
        msg: 'stopped by an internal error',
        err: { message: 'a defect on purpose' },
      },
    ])
  }
  expect(history.counts.done).toBeGreaterThanOrEqual(50)
  expect(history.counts.unknown).toBeGreaterThan(0)

  await using program = await startProgram({ databaseUrl })
  const stored = await readStore(program.operations)
  expect(history.settle(stored)).toEqual([])
})

test('a server ends as well when nobody reads its log any more', async () => {
  using folder = temporaryFolder()
  await using server = await startServer({
    databaseUrl: `file:${join(folder.path, 'plants.db')}`,
    environment: { LOG_LEVEL: 'info' },
    preload,
  })
  server.process.stdout.destroy()
  expect(await server.end('SIGUSR2')).toBe(1)
})
