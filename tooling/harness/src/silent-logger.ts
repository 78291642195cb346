/** A logger for the server that writes nothing. */
export const silentLogger = { error() {}, debug() {} }
