import { patch } from './patch.ts'

/** Answers a change of a plant before its transaction. Reads share the queue on PostgreSQL. */
patch(
  /\bqueue\d*\.push\(submitted\)/,
  '/Plant$/.test(submitted.changes[0][0]) && submitted.resolve(submitted.changes.map(() => 1), 0); $&',
)
