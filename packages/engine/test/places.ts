import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TestDatabase } from '@plant-store/harness/postgres'
import { createTestSchema, temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { migrateSqlite } from '../src/sqlite/schema.ts'
import {
  backUpStore,
  entities,
  inspectStore,
  openReader,
  openSalvage,
  restoreStore,
} from './notes.ts'

/** The databases that a test runs on. */
export const databases = ['SQLite', 'PostgreSQL'] as const

/** Returns the path of a store that a test may create. */
export function newFile(): string {
  return join(temporaryFolder(), 'notes.db')
}

/** A place for one store, and what can be done to it behind the store's back. */
export interface Place {
  readonly url: string
  run(statements: string): Promise<void>
  /** Returns a text that differs after a change of the tables or their rows. */
  fingerprint(): Promise<string>
}

/** Makes a place for a store, which is removed after the test. */
export async function makePlace(name: (typeof databases)[number]): Promise<Place> {
  if (name === 'SQLite') {
    return placeInFile(newFile())
  }
  const schema = await createTestSchema()
  onTestFinished(() => schema[Symbol.asyncDispose]())
  return placeInSchema(schema)
}

function placeInFile(file: string): Place {
  return {
    url: `file:${file}`,
    run: async statements => changeBySql(file, statements),
    fingerprint: async () => hashOf(file),
  }
}

function placeInSchema({ url, query }: TestDatabase): Place {
  return {
    url,
    run: async statements => void (await query(statements)),
    async fingerprint() {
      const schema =
        'select schema_to_xml_and_xmlschema(current_schema(), true, true, $1)'
      return JSON.stringify(await query(schema, ['']))
    },
  }
}

/** Changes a store as another program would. */
export function changeBySql(file: string, statements: string): void {
  const database = new Database(file)
  database.unsafeMode()
  database.exec(statements)
  database.close()
}

/** Starts on a file as `openStorage` does, without the thread of a writer. */
export async function createStore(url: string): Promise<void> {
  await migrateSqlite(url.slice('file:'.length), entities, {
    lockTimeoutMs: 5_000,
    migrates: false,
  })
}

function hashOf(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

/** The files in a folder, each with the hash of its content. */
export function snapshot(folder: string): Record<string, string> {
  const names = readdirSync(folder)
  return Object.fromEntries(names.map(name => [name, hashOf(join(folder, name))]))
}

/**
 * Returns the files of a folder that this process has open. It returns none where the
 * system does not list them.
 */
export function openFilesIn(folder: string): string[] {
  const list = '/proc/self/fd'
  return (existsSync(list) ? readdirSync(list) : []).flatMap(each => {
    try {
      const file = readlinkSync(join(list, each))
      return file.startsWith(folder) ? [file] : []
    } catch {
      // Reading the list opens a file, which is closed by now.
      return []
    }
  })
}

/**
 * All that reads a store on a file without changing it. Each resolves to the number of
 * notes in the store.
 */
export const looks = Object.entries<(url: string) => Promise<number>>({
  inspectStore: async url => (await inspectStore(url)).counts.notes,
  async openReader(url) {
    await using reader = await openReader(url)
    return (await reader.counts()).notes
  },
  async openSalvage(url) {
    await using salvage = await openSalvage(url)
    const notes = await itemsOf(salvage.of('notes').all())
    return notes.length
  },
  async backUpStore(url) {
    const report = await backUpStore(url, join(temporaryFolder(), 'backup'))
    return report.counts.notes
  },
  async restoreStore(url) {
    const other = `file:${temporaryFolder()}/other.db`
    const report = await restoreStore(other, url.slice('file:'.length))
    return report.counts.notes
  },
})

/** Returns the items of all pages. */
export async function itemsOf<Item>(
  pages: AsyncIterable<readonly Item[]>,
): Promise<Item[]> {
  const items: Item[] = []
  for await (const page of pages) {
    items.push(...page)
  }
  return items
}
