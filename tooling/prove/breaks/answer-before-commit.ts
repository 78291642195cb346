import { patch } from './patch.ts'

/** A change is answered as made as soon as it waits. */
patch(/\bqueue\d*\.push\(\{\s*change\b[^}]*\bresolve\b[^}]*\}\)/, 'resolve(1); $&')
