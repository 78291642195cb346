import { patch } from './patch.ts'

/** Whoever writes is told that it is done as soon as it waits. */
patch(
  'persistence/dist/group-commit.js',
  'return new Promise((resolve, reject) => {',
  `return new Promise((resolve, reject) => {
    resolve(1)`,
)
