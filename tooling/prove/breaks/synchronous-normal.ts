import { patch } from './patch.ts'

/** Answers a commit before it is fsynced. */
patch(/synchronous = FULL/, 'synchronous = NORMAL')
