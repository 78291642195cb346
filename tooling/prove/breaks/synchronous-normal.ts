import { patch } from './patch.ts'

/** A commit is answered before it is fsynced. */
patch(/synchronous = FULL/, 'synchronous = NORMAL')
