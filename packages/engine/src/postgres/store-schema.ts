import type { Entities } from '../compile-entities.ts'
import { hasStoreTables, isStore, storeTablesOf } from '../migrations.ts'
import type { Connection } from './connection.ts'

/** Where the server looks for tables. */
interface SearchPath {
  readonly role: string
  /** The setting `search_path`, such as `"$user", public`. */
  readonly setting: string
  /** The first schema that exists and that the role may use. */
  readonly current: string | null
}

/** A schema of the search path that exists. */
interface PathSchema {
  readonly name: string
  readonly is_usable: boolean
  readonly tables: readonly string[]
}

/**
 * Finds the schema that has the store, wherever it stands in the search path.
 *
 * It need not be the first one: `create schema authorization app` puts an empty schema
 * before `public`, because the path begins with the schema of the role's name. A store
 * that was only looked for in the first schema would seem lost.
 *
 * @throws Error if two schemas have a store, if the role may not use the one that has it,
 *   or if there is neither a store nor a place for one. No place is a schema that may not
 *   be used, or that has tables of another program
 */
export async function findStoreSchema(connection: Connection, entities: Entities) {
  const path = await connection.askRow<SearchPath>(
    `select current_user::text as role, current_setting('search_path') as setting,
      current_schema()::text as current`,
  )
  const schemas = await readSchemas(connection, path)
  const stores = schemas.filter(({ tables }) => hasStoreTables(entities, tables))
  const [store, second] = stores

  if (second !== undefined) {
    const names = stores.map(({ name }) => name).sort()
    throw new Error(
      `its schemas ${names.join(' and ')} both have a store: name one with ?options=-c%20search_path%3D${names[0]}`,
    )
  }
  if (store === undefined) {
    const { role, setting, current } = path
    const first = schemas.find(({ name }) => name === current)
    if (first === undefined) {
      throw new Error(`the role ${role} may use no schema of the search path ${setting}`)
    }
    // Throws if its tables belong to another program. No schema has a store.
    isStore(entities, first.tables)
    return { name: first.name, hasStore: false }
  }
  if (!store.is_usable) {
    throw new Error(`the role ${path.role} may not use its schema ${store.name}`)
  }
  return { name: store.name, hasStore: true }
}

/**
 * Returns the schemas of the search path that exist. It asks the catalogs, because they
 * also list schemas and tables that the role may not use, which `information_schema`
 * hides.
 */
async function readSchemas(connection: Connection, path: SearchPath) {
  const { rows } = await connection.ask<PathSchema>(
    `select nspname::text as name, has_schema_privilege(oid, 'usage') as is_usable, array(
        select relname::text from pg_class
        where relnamespace = pg_namespace.oid and relkind in ('r', 'p')
      ) as tables
    from pg_namespace where nspname = any($1)`,
    [namesIn(path)],
  )
  return rows
}

/** Returns the names of schemas in the search path, which may not exist. */
function namesIn({ role, setting }: SearchPath): readonly string[] {
  const identifiers = setting.match(/"(?:[^"]|"")*"|[^\s,"]+/g) ?? []
  const names = identifiers.map(each =>
    each.startsWith('"') ? each.slice(1, -1).replaceAll('""', '"') : each.toLowerCase(),
  )
  return names.map(name => (name === '$user' ? role : name))
}

/** Finds every schema that has a store, on the search path or not. */
export async function findStoreSchemas(connection: Connection, entities: Entities) {
  const { rows } = await connection.ask<{ name: string }>(
    `select nspname::text as name from pg_namespace
    where $1 <@ array(
      select relname::text from pg_class where relnamespace = pg_namespace.oid
    )
    order by 1`,
    [storeTablesOf(entities)],
  )
  return rows.map(({ name }) => name)
}
