import { patch } from './patch.ts'

/** Whoever submits a change is told that it is made as soon as it waits. */
patch(/\bqueue\d*\.push\(\{\s*change\b[^}]*\bresolve\b[^}]*\}\)/, 'resolve(1); $&')
