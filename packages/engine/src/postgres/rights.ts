import type { Connection } from './connection.ts'

/** A right on a table that the store uses. */
export type TableRight = 'select' | 'insert' | 'update' | 'delete'

export const changeRights: readonly TableRight[] = [
  'select',
  'insert',
  'update',
  'delete',
]

/**
 * The rights on tables that the role lacks, such as `insert on notes`. Takes the names of the tables,
 * of which some may not exist, and the rights.
 */
export const missingRightsQuery = `
  select privilege || ' on ' || name as missing
  from unnest($1::text[]) as name, unnest($2::text[]) as privilege
  where to_regclass(quote_ident(name)) is not null
    and not has_table_privilege(to_regclass(quote_ident(name)), privilege)`

/** @throws Error that names every missing right */
export function refuseMissing(rows: readonly { readonly missing: string }[]): void {
  if (rows.length > 0) {
    const names = rows.map(({ missing }) => missing)
    throw new Error(`its role lacks the right to ${names.join(', ')}`)
  }
}

/** @throws Error that names every missing right */
export async function checkRights(
  connection: Connection,
  tables: readonly string[],
  rights: readonly TableRight[],
): Promise<void> {
  const { rows } = await connection.query<{ missing: string }>(missingRightsQuery, [
    tables,
    rights,
  ])
  refuseMissing(rows)
}

/** @throws Error unless the role may create tables, and change those that are there */
export async function checkMigrationRights(
  connection: Connection,
  tables: readonly string[],
): Promise<void> {
  const { rows } = await connection.query<{
    role: string
    schema: string
    may_create: boolean
    foreign_tables: readonly string[]
  }>(
    `select current_user::text as role, current_schema()::text as schema,
      has_schema_privilege(current_schema(), 'create') as may_create,
      array(
        select relname::text from pg_class join pg_namespace on pg_namespace.oid = relnamespace
        where nspname = current_schema() and relname = any($1) and not pg_has_role(relowner, 'usage')
        order by 1
      ) as foreign_tables`,
    [tables],
  )
  const [found] = rows
  if (found?.may_create === false) {
    throw new Error(
      `its role ${found.role} may not create tables in the schema ${found.schema}`,
    )
  }
  if (found !== undefined && found.foreign_tables.length > 0) {
    throw new Error(
      `a migration changes ${found.foreign_tables.join(', ')}, which its role ${found.role} does not own`,
    )
  }
}
