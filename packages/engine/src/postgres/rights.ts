import type { Connection } from './connection.ts'

/**
 * A right that the role lacks, such as `insert on notes`, or `see all rows of notes` if
 * row-level security hides some.
 */
interface MissingRight {
  readonly missing: string
}

/** The rights on every table that a server needs. */
export const serverRights = ['select', 'insert', 'update', 'delete']

/**
 * Returns a row for each {@link MissingRight}. Takes the names of the tables, of which
 * some may not exist, and the rights.
 */
export const missingRightsQuery = `
  select privilege || ' on ' || name as missing
  from unnest($1::text[]) as name, unnest($2::text[]) as privilege
  where to_regclass(quote_ident(name)) is not null
    and not has_table_privilege(to_regclass(quote_ident(name)), privilege)
  union all
  select 'see all rows of ' || name
  from unnest($1::text[]) as name where row_security_active(to_regclass(quote_ident(name)))`

export async function findMissingRights(
  connection: Connection,
  tables: readonly string[],
  rights: readonly string[],
) {
  const values = [tables, rights]
  const { rows } = await connection.ask<MissingRight>(missingRightsQuery, values)
  return rows
}

/** @throws Error that names every missing right */
export function refuseMissing(missingRights: readonly MissingRight[]): void {
  if (missingRights.length > 0) {
    const names = missingRights.map(({ missing }) => missing)
    throw new Error(`its role lacks the right to ${names.join(', ')}`)
  }
}

/** The rights of the role in the schema of the store. */
interface SchemaRights {
  readonly role: string
  readonly schema: string
  readonly may_create: boolean
  /** The tables of the store that the role does not own, in order of name. */
  readonly foreign_tables: readonly string[]
}

/** @throws Error unless the role may create tables, and change those that exist */
export async function checkMigrationRights(
  connection: Connection,
  tables: readonly string[],
): Promise<void> {
  const rights = await connection.askRow<SchemaRights>(
    `select current_user::text as role, current_schema()::text as schema,
      has_schema_privilege(current_schema(), 'create') as may_create,
      array(
        select relname::text from pg_class
        join pg_namespace on pg_namespace.oid = relnamespace
        where nspname = current_schema() and relname = any($1)
          and not pg_has_role(relowner, 'usage')
        order by 1
      ) as foreign_tables`,
    [tables],
  )
  const { role, schema, may_create: mayCreate, foreign_tables: foreignTables } = rights
  if (!mayCreate) {
    throw new Error(`its role ${role} may not create tables in the schema ${schema}`)
  }
  if (foreignTables.length > 0) {
    throw new Error(
      `a migration changes ${foreignTables.join(', ')}, which its role ${role} does not own`,
    )
  }
}
