import manifest from '../package.json' with { type: 'json' }

/**
 * Also the version of the published program, which has the server in it
 * (.changeset/config.json).
 */
export const { version } = manifest
