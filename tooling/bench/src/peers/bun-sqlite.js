// Not TypeScript, as Bun's types would replace Node's in this package.
import { Database } from 'bun:sqlite'
import { openDatabase } from './database.ts'

const { insert, find, page } = openDatabase(Database)

Bun.serve({
  hostname: '127.0.0.1',
  port: process.env.PORT,
  routes: {
    '/plants': {
      async POST(request) {
        const { id, name, tag } = await request.json()
        const isPlant =
          Number.isSafeInteger(id) &&
          typeof name === 'string' &&
          (tag === undefined || typeof tag === 'string')
        if (!isPlant) {
          return new Response('not a plant', { status: 400 })
        }
        insert.run(id, name, tag ?? null)
        return Response.json({ name, tag })
      },
      GET(request) {
        const query = new URL(request.url).searchParams
        const after = Number(query.get('after'))
        const limit = Number(query.get('limit'))
        if (!Number.isSafeInteger(after) || !(limit >= 1 && limit <= 1000)) {
          return new Response('not a page', { status: 400 })
        }
        return Response.json(page.all(after, limit))
      },
    },
    '/plants/:id': {
      GET({ params }) {
        const row = find.get(Number(params.id))
        return row ? Response.json(row) : new Response('no such plant', { status: 404 })
      },
    },
  },
})
