import { patch } from './patch.ts'

/** Answers a removal with an undeclared status. */
patch(/(\breply\d*)\.code\(204\)\.send\(\)/, '$1.code(202).send()')
