import { patch } from './patch.ts'

/** A create of a taken id replaces the plant that has it. */
patch(/\[\s*(["'`])insertPlant\1(?=[^?;]+\?\s*["'`]inserted)/, '[$1savePlant$1')
