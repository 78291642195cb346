import { openStorage, type Storage } from '@plant-store/persistence'
import { afterAll, afterEach, assert, beforeAll, beforeEach } from 'vitest'
import { type Subject, subjects } from './store-subjects.ts'

/** The databases that each test runs on. */
export const databases = ['SQLite', 'PostgreSQL'] as const

export type DatabaseName = (typeof databases)[number]

/** Returns a place for a store, a new one for each test of the block. */
export function usePlace(name: DatabaseName): { readonly current: Subject } {
  let place: Subject | undefined
  beforeEach(async () => {
    place = await subjects[name]()
  })
  afterEach(() => place?.[Symbol.asyncDispose]())
  return {
    get current() {
      assert(place, 'a test is running')
      return place
    },
  }
}

/** Opens a store for all tests of the block, and empties these tables before each. */
export function useStore(name: DatabaseName, tables: readonly string[]) {
  const stack = new AsyncDisposableStack()
  let opened: { readonly place: Subject; readonly storage: Storage } | undefined
  beforeAll(async () => {
    const place = stack.use(await subjects[name]())
    opened = { place, storage: stack.use(await openStorage({ url: place.url })) }
  })
  beforeEach(async () => {
    for (const table of tables) {
      await opened?.place.ask(`delete from ${table} returning 1`)
    }
  })
  afterAll(() => stack.disposeAsync())
  return {
    get place() {
      assert(opened, 'a test is running')
      return opened.place
    },
    get storage() {
      assert(opened, 'a test is running')
      return opened.storage
    },
  }
}
