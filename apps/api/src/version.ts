import manifest from '../../cli/package.json' with { type: 'json' }

/** Of the program, which is published as `plant-store`. This package is a part of it and has none. */
export const { version } = manifest
