import { patch } from './patch.ts'

/** Lets a create of a taken id replace the plant. */
patch(/\[\s*(["'`])insertPlant\1(?=[^?;]+\?\s*["'`]inserted)/, '[$1savePlant$1')
