import type { ColumnDefinitionBuilder } from 'kysely'

// These functions say what most columns of the tables are.

export function notNull(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull()
}

export function zeroByDefault(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull().defaultTo(0)
}
