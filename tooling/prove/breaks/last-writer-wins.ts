import { patch } from './patch.ts'

/** Lets a create of a taken id replace the plant. */
patch(/\b(change\d*\(\s*["'`])insertPlant(?=[^?;]+\?\s*["'`]inserted)/, '$1savePlant')
