import { patch } from './patch.ts'

/** Checkpoints the log after a few commits, so that a short proof covers checkpoints. */
patch(/wal_autocheckpoint = \$\{\w+\}/, 'wal_autocheckpoint = 40')
