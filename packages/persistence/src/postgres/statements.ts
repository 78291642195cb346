import { createStatements, type Statements } from '../repositories/repositories.ts'
import type { Statement } from '../repositories/statements.ts'
import { postgresDialect } from '../schema/dialect.ts'
import { plantColumns, rowColumns, textBytesInSql, typeOf } from '../schema/tables.ts'

const shared = createStatements(postgresDialect)

const quoted = (columns: readonly string[]) => columns.map(column => `"${column}"`).join(', ')
const arrays = rowColumns.map((column, index) => `$${index + 1}::${typeOf[column]}[]`)

export const statements: Statements = {
  read: {
    ...shared.read,
    page: withinText(shared.read.page),
    pageOfTag: withinText(shared.read.pageOfTag),
  },
  change: {
    ...shared.change,
    /**
     * Inserts any number of rows, and returns the ids of those inserted. Each parameter is the array of a column. One
     * statement for each row would cost this process seven times the processor time.
     */
    insertPlant: {
      ...shared.change.insertPlant,
      sql: `
        insert into plants (${quoted(rowColumns)}) select * from unnest(${arrays.join(', ')})
        on conflict do nothing returning id`,
    },
  },
}

/** Selects the rows of a page before which the texts have fewer bytes than one more parameter, without reading a text. */
function withinText({ sql, parameters }: Statement): Statement {
  return {
    parameters,
    sql: `
      select ${quoted(plantColumns)}
      from (
        select *, sum(${textBytesInSql})
          over (order by id rows between unbounded preceding and 1 preceding) as bytes_before
        from (${sql}) as page
      ) as page
      where coalesce(bytes_before, 0) < $${parameters.length + 1}
      order by id`,
  }
}
