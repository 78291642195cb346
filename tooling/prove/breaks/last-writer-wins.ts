import { patch } from './patch.ts'

/** A create of a taken id replaces the plant that has it. */
patch('persistence/dist/repositories.js', /'insertPlant'/, `'savePlant'`)
