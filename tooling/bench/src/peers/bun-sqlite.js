// Not TypeScript, as Bun's types would replace Node's in this package.
import { Database } from 'bun:sqlite'

const { PORT, DATABASE_URL, SYNCHRONOUS } = process.env
const db = new Database(new URL(DATABASE_URL).pathname)
db.run('pragma journal_mode = wal')
db.run(`pragma synchronous = ${SYNCHRONOUS}`)
db.run(
  'create table if not exists plants (id integer primary key, name text not null, tag text)',
)
const insert = db.query('insert into plants (id, name, tag) values (?, ?, ?)')
const find = db.query('select id, name, tag from plants where id = ?')
const page = db.query('select id, name, tag from plants where id > ? order by id limit ?')

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(PORT),
  routes: {
    '/plants': {
      async POST(request) {
        const { id, name, tag } = await request.json()
        const isPlant =
          Number.isSafeInteger(id) &&
          typeof name === 'string' &&
          (tag === undefined || typeof tag === 'string')
        if (!isPlant) {
          return refuse(400, 'not a plant')
        }
        insert.run(id, name, tag ?? null)
        return Response.json({ name, tag })
      },
      GET(request) {
        const query = new URL(request.url).searchParams
        const after = Number(query.get('after') ?? Number.MIN_SAFE_INTEGER)
        const limit = Number(query.get('limit') ?? 100)
        if (!Number.isSafeInteger(after) || !(limit >= 1 && limit <= 1000)) {
          return refuse(400, 'not a page')
        }
        return Response.json(page.all(after, limit))
      },
    },
    '/plants/:id': {
      GET({ params }) {
        const row = find.get(Number(params.id))
        return row ? Response.json(row) : refuse(404, 'no such plant')
      },
    },
    '/readyz': () => Response.json({}),
  },
})

function refuse(status, message) {
  return Response.json({ error: status, message }, { status })
}
