import { patch } from './patch.ts'

/** A removal is answered with a status that the description doesn't know. */
patch(/(\breply\d*)\.code\(204\)\.send\(\)/, '$1.code(202).send()')
