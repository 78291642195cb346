import { patch } from './patch.ts'

/** Answers a change before its transaction. */
patch(/\bqueue\d*\.push\(submitted\)/, 'submitted.resolve(submitted.changes.map(() => 1), 0); $&')
