import { patch } from './patch.ts'

/** Answers a change before its transaction. */
patch(/\bqueue\d*\.push\(\{\s*changes\b[^}]*\bresolve\b[^}]*\}\)/, 'resolve(changes.map(() => 1), 0); $&')
