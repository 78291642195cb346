import pg from 'pg'
import type { Entities } from '../entity.ts'
import { hasStoreTables, isStore, storeTablesOf } from '../migrations.ts'
import type { Connection } from './connection.ts'

/** The schema of a database that has the store, or would get it. */
export interface StoreSchema {
  readonly name: string
  readonly hasStore: boolean
}

/** A schema of the search path that exists. */
interface SchemaRow {
  readonly name: string
  readonly is_usable: boolean
  readonly tables: readonly string[]
}

/**
 * Finds the schema that has the store, wherever it stands in the search path. `create schema
 * authorization app` puts an empty schema before `public`, because the path begins with the schema
 * of the role's name: a store that was only looked for in the first one would seem lost.
 *
 * @throws Error if two schemas have a store, the role may not use the one that has it, or there is
 *   none and no place for one
 */
export async function findStoreSchema(
  connection: Connection,
  entities: Entities,
): Promise<StoreSchema> {
  const { rows: places } = await connection.query<{
    role: string
    path: string
    current: string | null
  }>(
    `select current_user::text as role, current_setting('search_path') as path,
      current_schema()::text as current`,
  )
  const [place] = places
  if (place === undefined) {
    throw new Error('the server does not say where it looks for tables')
  }
  const { role, path, current } = place
  // The catalogs also list schemas and tables that the role may not use. `information_schema` hides them.
  const { rows: schemas } = await connection.query<SchemaRow>(
    `select nspname::text as name, has_schema_privilege(oid, 'usage') as is_usable, array(
        select relname::text from pg_class where relnamespace = pg_namespace.oid and relkind in ('r', 'p')
      ) as tables
    from pg_namespace where nspname = any($1)`,
    [schemasIn(path, role)],
  )
  const stores = schemas.filter(({ tables }) => hasStoreTables(entities, tables))
  const [store, second] = stores
  if (second !== undefined) {
    const names = stores.map(({ name }) => name).sort()
    throw new Error(
      `its schemas ${names.join(' and ')} both have a store: name one with ?options=-c%20search_path%3D${names[0]}`,
    )
  }
  if (store?.is_usable === false) {
    throw new Error(`the role ${role} may not use its schema ${store.name}`)
  }
  if (store !== undefined) {
    return { name: store.name, hasStore: true }
  }

  const first = schemas.find(({ name }) => name === current)
  if (first === undefined) {
    throw new Error(`the role ${role} may use no schema of the search path ${path}`)
  }
  return { name: first.name, hasStore: isStore(entities, first.tables) }
}

/** Finds every schema that has a store, on the search path or not. */
export async function findStoreSchemas(
  connection: Connection,
  entities: Entities,
): Promise<readonly string[]> {
  const { rows } = await connection.query<{ name: string }>(
    `select nspname::text as name from pg_namespace
    where $1 <@ array(select relname::text from pg_class where relnamespace = pg_namespace.oid)
    order by 1`,
    [storeTablesOf(entities)],
  )
  return rows.map(({ name }) => name)
}

/** Makes the schema the only one in which a transaction finds tables and creates them. */
export async function useSchema(
  connection: Connection,
  { name }: StoreSchema,
): Promise<void> {
  await connection.query("select set_config('search_path', $1, true)", [
    pg.escapeIdentifier(name),
  ])
}

/** @param path a list in the form of the setting `search_path` */
function schemasIn(path: string, role: string): readonly string[] {
  const names = path.match(/"(?:[^"]|"")*"|[^\s,"]+/g) ?? []
  return names.map(name => {
    const unquoted = name.startsWith('"')
      ? name.slice(1, -1).replaceAll('""', '"')
      : name.toLowerCase()
    return unquoted === '$user' ? role : unquoted
  })
}
