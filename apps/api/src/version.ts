import manifest from '../package.json' with { type: 'json' }

/**
 * The version of the server, and of the published program that contains it
 * (.changeset/config.json).
 */
export const { version } = manifest
