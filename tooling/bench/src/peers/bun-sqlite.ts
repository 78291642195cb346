import { Database, SQLiteError } from 'bun:sqlite'

interface Row {
  id: number
  name: string
  tag: string | null
}

const { PORT, DATABASE_FILE = '', SYNCHRONOUS } = process.env
const db = new Database(DATABASE_FILE)
db.run('pragma journal_mode = wal')
db.run(`pragma synchronous = ${SYNCHRONOUS}`)
db.run('create table if not exists plants (id integer primary key, name text not null, tag text)')
const insert = db.query<never, [number, string, string | null]>(
  'insert into plants (id, name, tag) values (?, ?, ?)',
)
const find = db.query<Row, [number]>('select id, name, tag from plants where id = ?')
const page = db.query<Row, [number, number]>(
  'select id, name, tag from plants where id > ? order by id limit ?',
)

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(PORT),
  routes: {
    '/plants': {
      async POST(request) {
        const body = (await request.json().catch(() => null)) as Partial<Row> | null
        const { id, name, tag } = body ?? {}
        if (
          !Number.isSafeInteger(id) ||
          typeof name !== 'string' ||
          (tag !== undefined && typeof tag !== 'string')
        ) {
          return refuse(400, 'not a plant')
        }
        try {
          insert.run(id as number, name, tag ?? null)
        } catch (error) {
          if (error instanceof SQLiteError && error.code === 'SQLITE_CONSTRAINT_PRIMARYKEY') {
            return refuse(400, 'the id is taken')
          }
          throw error
        }
        return Response.json({ name, tag })
      },
      GET(request) {
        const query = new URL(request.url).searchParams
        const after = Number(query.get('after') ?? Number.MIN_SAFE_INTEGER)
        const limit = Number(query.get('limit') ?? 100)
        if (!Number.isSafeInteger(after) || !(limit >= 1 && limit <= 1000)) return refuse(400, 'not a page')
        return Response.json(page.all(after, limit).map(toPlant))
      },
    },
    '/plants/:id': {
      GET({ params: { id } }) {
        const row = find.get(Number(id))
        return row ? Response.json(toPlant(row)) : refuse(404, 'no such plant')
      },
    },
    '/readyz': () => Response.json({}),
  },
})

function toPlant({ id, name, tag }: Row) {
  return tag === null ? { id, name } : { id, name, tag }
}

function refuse(error: number, message: string) {
  return Response.json({ error, message }, { status: error })
}
