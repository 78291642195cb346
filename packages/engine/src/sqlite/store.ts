import { accessSync, constants, existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { compileEntities, type Entities } from '../compile-entities.ts'
import { NoStoreError } from '../errors.ts'
import { schemaVersionOf } from '../migrations.ts'
import { sqliteDialect } from '../statements/dialect.ts'
import type { EngineOptions, SqliteHandle, StoreContent } from '../types.ts'
import { inspectSqlite } from './backup.ts'
import { attachSqlite } from './driver.ts'
import { migrateSqlite, openReadOnly } from './schema.ts'
import { isFile, refuseForeignWal, refuseSecondPath } from './store-path.ts'
import { withReason } from './with-reason.ts'
import { startWriter } from './writer-client.ts'

/** 1,000,000 changes of ids in any order beside one backup write less. */
const walBytesMaxDefault = 4 * 1024 ** 3

/**
 * Returns what can be done with a store on a file. Each rejects with an Error in words.
 */
export function sqliteStore(file: string, content: StoreContent) {
  const { entities } = content
  return {
    open: (options: EngineOptions) =>
      withReason(() => openSqlite(file, content, options), file),
    plan: () =>
      withReason(
        async () => ({ versionBefore: await findVersion(file, entities) }),
        file,
      ),
    read: () => openReadOnly(file, entities),
    inspect: () => withReason(() => inspectSqlite(file, entities), file),
  }
}

async function findVersion(file: string, entities: Entities) {
  requireWritable(file)
  requireWritable(dirname(file))
  refuseForeignWal(file)
  if (!isFile(file)) {
    return
  }
  refuseSecondPath(file)
  try {
    await using reading = await openReadOnly(file, entities)
    return reading.schemaVersion
  } catch (error) {
    if (error instanceof NoStoreError) {
      return
    }
    throw error
  }
}

/** Requires that a path, or the folder in which it would be created, may be written. */
function requireWritable(path: string) {
  if (existsSync(path)) {
    accessSync(path, constants.W_OK)
  } else {
    requireWritable(dirname(path))
  }
}

async function openSqlite(file: string, content: StoreContent, options: EngineOptions) {
  const { entities } = content
  const {
    queueChangesMax,
    lockTimeoutMs = 5_000,
    migrates = false,
    walBytesMax = walBytesMaxDefault,
    ...rest
  } = options
  const versionBefore = await migrateSqlite(file, entities, { lockTimeoutMs, migrates })
  await using opening = new AsyncDisposableStack()
  const { changeStatements } = compileEntities(entities, sqliteDialect)
  // The writer is closed last, because it takes a connection that may write to merge the
  // WAL into the file.
  const writer = opening.use(
    await startWriter({ file, lockTimeoutMs, walBytesMax, changeStatements }),
  )
  const share = (): SqliteHandle => ({
    kind: 'file',
    file,
    singlePort: writer.connect('single'),
    bulkPort: writer.connect('bulk'),
    queueChangesMax,
  })
  const storage = opening.use(attachSqlite(share(), content, rest))
  const opened = opening.move()
  return {
    ...storage,
    versionBefore,
    schemaVersion: schemaVersionOf(entities),
    share,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
