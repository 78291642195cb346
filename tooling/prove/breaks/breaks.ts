/**
 * One place of the program, changed as it is loaded. `patch.ts?NAME` does it in a program
 * that preloads it.
 */
export interface Break {
  /** The sentence of docs/proof.md about it. */
  readonly does: string
  readonly place: RegExp
  readonly replacement: string
  /**
   * The part that must notice it, and its failure: a program that cannot start would
   * prove nothing.
   */
  readonly part: string
  readonly noticed: RegExp
}

export const breaks: Readonly<Record<string, Break>> = {
  'answer-before-commit': {
    does: 'answers before the commit',
    // A change of a plant: reads share the queue on PostgreSQL.
    place: /\bqueue\d*\.push\(\{ changes, textChars\w*, resolve, reject \}\)/,
    replacement: '/^plants[.]/.test(changes[0][0]) && resolve(changes.map(() => 1)); $&',
    part: 'kill',
    noticed: /no order of events explains/,
  },
  'last-writer-wins': {
    does: 'the last writer wins',
    place: /\b(submit\d*\(\s*)insert(?=, \w+\(plant\)\)\.then)/,
    replacement: '$1save',
    part: 'model',
    noticed: /is: 'taken'|no order (of events )?explains/,
  },
  'answer-not-awaited': {
    does: 'does not wait for the answer to a delivery',
    place: /await (post\d*\(\{\s*url\b[^}]*\}\))/,
    replacement: '($1.catch(() => {}), 200)',
    part: 'announcements',
    noticed: /never heard of/,
  },
  'undeclared-status': {
    does: 'answers with an undeclared status',
    place: /(\banswer\d*)\(204, null\)/,
    replacement: '$1(202, null)',
    part: 'fuzz',
    noticed: /the status 202 is not declared/,
  },
  'synchronous-normal': {
    does: 'answers before the log is fsynced',
    place: /synchronous = FULL/,
    replacement: 'synchronous = NORMAL',
    part: 'power-cut',
    noticed: /is lost/,
  },
  'failed-copy-ignored': {
    does: 'goes on after a failed fsync of pages that were copied from the WAL',
    place: /if \(outcome\.loss !== (?:undefined|void 0)\)\s+onLoss\d*\(outcome\.loss\)/,
    replacement: 'void 0',
    part: 'failed-copies',
    noticed: /is lost|is damaged|is not what was sent/,
  },
  'folder-not-synced': {
    does: 'does not fsync the folder of a new file',
    place: /(?<=renameSync\d*\(partial, file\);\s*)syncFile\d*\(dirname\d*\(file\)\)/,
    replacement: 'void 0',
    part: 'power-cut-copies',
    noticed: /is lost/,
  },
}

/**
 * No fault: checkpoints after a few commits, so that a short run has some, most of them
 * by the thread.
 */
export const shortLog = {
  place: /\bcheckpointPages(\d*) = 8_?(?:000|e3)/,
  replacement: 'checkpointPages$1 = 40',
}

/** Returns what a program preloads to be broken. */
export const preloadOf = (name: string): string =>
  `${import.meta.resolve('./patch.ts')}?${name}`
