/**
 * Defects on purpose: the patch of each name beside this file. Each has the sentence of
 * docs/proof.md about it, the part that must notice it, and its failure. A program that
 * cannot start would prove nothing.
 */
export const breaks = {
  'answer-before-commit': {
    does: 'answers before the commit',
    part: 'kill',
    noticed: /no order of events explains/,
  },
  'last-writer-wins': {
    does: 'the last writer wins',
    part: 'model',
    noticed: /is: 'taken'|no order (of events )?explains/,
  },
  'answer-not-awaited': {
    does: 'does not wait for the answer to a delivery',
    part: 'kill',
    noticed: /never heard of|announced/,
  },
  'undeclared-status': {
    does: 'answers with an undeclared status',
    part: 'fuzz',
    noticed: /the status 202 is not declared/,
  },
  'synchronous-normal': {
    does: 'answers before the log is fsynced',
    part: 'power-cut',
    noticed: /is lost/,
  },
  'failed-copy-ignored': {
    does: 'goes on after a failed fsync of pages that were copied from the WAL',
    part: 'failed-copies',
    noticed: /is lost|is damaged|is not what was sent/,
  },
  'folder-not-synced': {
    does: 'does not fsync the folder of a new file',
    part: 'power-cut-copies',
    noticed: /is lost/,
  },
}
