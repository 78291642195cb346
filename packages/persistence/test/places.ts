import { join } from 'node:path'
import { type Plant, type PlantId, parsePlant, parsePlantId } from '@plant-store/domain'
import { temporaryFolder } from '@plant-store/harness'
import { createTestSchema } from '@plant-store/harness/vitest'
import { type MainStorage, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { afterAll, assert, beforeAll, beforeEach } from 'vitest'

export const plant = (id: number | bigint, name = `plant ${id}`, tag?: string): Plant =>
  parsePlant({ id: BigInt(id), name, tag })
export const plantId = (id: number | bigint): PlantId => parsePlantId(BigInt(id))

/** The databases that each test runs on. */
export const databases = ['SQLite', 'PostgreSQL'] as const

/** A place for one store, and what can be asked of it behind the store's back. */
export interface Place extends AsyncDisposable {
  readonly url: string
  /** Runs a statement, and returns its rows, each as its values. */
  ask(statement: string): Promise<unknown[][]>
}

export async function makePlace(name: (typeof databases)[number]): Promise<Place> {
  return name === 'SQLite' ? makeFile() : makeSchema()
}

function makeFile(): Place {
  const folder = temporaryFolder()
  const file = join(folder.path, 'plants.db')
  let database: Database.Database | undefined
  return {
    url: `file:${file}`,
    async ask(question) {
      database ??= new Database(file)
      const statement = database.prepare<[], unknown[]>(question)
      if (statement.reader) {
        return statement.raw().all()
      }
      statement.run()
      return []
    },
    async [Symbol.asyncDispose]() {
      database?.close()
      folder[Symbol.dispose]()
    },
  }
}

async function makeSchema(): Promise<Place> {
  const schema = await createTestSchema()
  return {
    url: schema.url,
    ask: async question => (await schema.query(question)).map(Object.values),
    [Symbol.asyncDispose]: () => schema[Symbol.asyncDispose](),
  }
}

/** Opens a store for all tests of the block, and empties these tables before each. */
export function useStore(name: (typeof databases)[number], tables: readonly string[]) {
  const stack = new AsyncDisposableStack()
  let opened: { readonly place: Place; readonly storage: MainStorage } | undefined
  const current = () => {
    assert(opened, 'a test is running')
    return opened
  }
  beforeAll(async () => {
    const place = stack.use(await makePlace(name))
    opened = { place, storage: stack.use(await openStorage({ url: place.url })) }
  })
  beforeEach(async () => {
    for (const table of tables) {
      await current().place.ask(`delete from ${table}`)
    }
  })
  afterAll(() => stack.disposeAsync())
  return {
    get place() {
      return current().place
    },
    get storage() {
      return current().storage
    },
  }
}
