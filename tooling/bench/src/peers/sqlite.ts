import Database from 'better-sqlite3'

export interface NewPlant {
  id: number
  name: string
  tag?: string
}

interface Row {
  id: number
  name: string
  tag: string | null
}

/** What better-sqlite3's own documentation advises: WAL, and every statement prepared once. */
export function openPlants() {
  const { DATABASE_FILE, SYNCHRONOUS } = process.env
  const db = new Database(DATABASE_FILE)
  db.pragma('journal_mode = WAL')
  db.pragma(`synchronous = ${SYNCHRONOUS}`)
  db.exec('create table if not exists plants (id integer primary key, name text not null, tag text)')
  const insert = db.prepare<[number, string, string | null]>(
    'insert into plants (id, name, tag) values (?, ?, ?)',
  )
  const find = db.prepare<[number], Row>('select id, name, tag from plants where id = ?')
  const page = db.prepare<[number, number], Row>(
    'select id, name, tag from plants where id > ? order by id limit ?',
  )

  return {
    /** @returns whether the id was free */
    insert({ id, name, tag }: NewPlant): boolean {
      try {
        insert.run(id, name, tag ?? null)
        return true
      } catch (error) {
        if (error instanceof Database.SqliteError && error.code === 'SQLITE_CONSTRAINT_PRIMARYKEY')
          return false
        throw error
      }
    },
    find(id: number): NewPlant | undefined {
      const row = find.get(id)
      return row && toPlant(row)
    },
    page(after: number, limit: number): NewPlant[] {
      return page.all(after, limit).map(toPlant)
    },
  }
}

function toPlant({ id, name, tag }: Row): NewPlant {
  return tag === null ? { id, name } : { id, name, tag }
}
