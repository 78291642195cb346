import { patch } from './patch.ts'

/** The log is taken into the database after a few commits: a proof in so short a time sees that too. */
patch(/wal_autocheckpoint = \d+/, 'wal_autocheckpoint = 40')
