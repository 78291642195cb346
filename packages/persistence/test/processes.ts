import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { openStorage } from '@plant-store/persistence'
import { onTestFinished } from 'vitest'
import type { Answer, Order } from './store-process.ts'

export interface StoreProcess {
  readonly process: ChildProcess
  insert(ids: readonly bigint[], name?: string): Promise<readonly string[]>
  list(): Promise<readonly bigint[]>
  check(): Promise<readonly string[]>
  /** Resolves once the store is closed and the process is gone. */
  close(): Promise<void>
  kill(): Promise<void>
}

/** Starts a process that has the store open. One order at a time. */
export async function startStoreProcess(url: string): Promise<StoreProcess> {
  const program = fileURLToPath(new URL('store-process.ts', import.meta.url))
  const child = fork(program, [url], {
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))

  const nextAnswer = async () => {
    const [answer] = await Promise.race([
      once(child, 'message') as Promise<[Answer]>,
      exited.then(() => Promise.reject(new Error('the store process ended'))),
    ])
    return answer
  }
  const give = <Wanted extends Answer>(order: Order) => {
    child.send(order)
    return nextAnswer() as Promise<Wanted>
  }

  await nextAnswer()
  return {
    process: child,
    insert: async (ids, name = 'a') =>
      (await give<{ outcomes: string[] }>({ insert: ids, name })).outcomes,
    list: async () => (await give<{ ids: bigint[] }>({ list: true })).ids,
    check: async () => (await give<{ outcomes: string[] }>({ check: true })).outcomes,
    async close() {
      await give({ close: true })
      await exited
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

export const idsFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, n) => BigInt(first + n))

/** Opens a store, and returns the ids of its plants. */
export async function idsAt(url: string): Promise<bigint[]> {
  await using storage = await openStorage({ url })
  const plants = await storage.plants.page({ limit: 1_000_000 })
  return plants.map(({ id }) => id)
}

/**
 * Makes a store insert until it refuses. Returns the ids that it reports as inserted, to
 * which more are added, and a promise that resolves once it has refused.
 */
export function flood(store: StoreProcess) {
  const inserted: bigint[] = []
  const refused = Promise.withResolvers<void>()
  store.process.on('message', (answer: Answer) => {
    if ('inserted' in answer) {
      inserted.push(answer.inserted)
    }
    if ('refused' in answer) {
      refused.resolve()
    }
  })
  store.process.send({ flood: 16 })
  return { inserted, refused: refused.promise }
}

/** A call that another thread interrupts is two lines; the second one says `resumed`. */
export const countSyncs = (calls: readonly string[]) =>
  calls.filter(line => /\bf(data)?sync\(/.test(line)).length
export const countInjected = (calls: readonly string[]) =>
  calls.filter(line => line.includes('(INJECTED)')).length
