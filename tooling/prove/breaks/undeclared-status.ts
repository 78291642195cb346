import { patch } from './patch.ts'

/** A removal is answered with a status that the description doesn't know. */
patch('http/dist/routes/plant-routes.js', 'reply.code(204)', 'reply.code(202)')
