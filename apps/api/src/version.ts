import manifest from '../../cli/package.json' with { type: 'json' }

/** Of the program, which is published as `plant-store`. This package is a part of it: its own version says nothing. */
export const { version } = manifest
