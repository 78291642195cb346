/** How often the schema version of an open store is read. */
const checkEveryMs = 10_000

interface VersionWatchOptions {
  readonly schemaVersion: number
  readonly readVersion: () => Promise<number>
  readonly onNewerVersion: (version: number) => void
}

/**
 * Reports once that a newer release has migrated the open store. This release goes on,
 * and would refuse the store at its next start. Disposal ends the watch.
 */
export function watchVersion({
  schemaVersion,
  readVersion,
  onNewerVersion,
}: VersionWatchOptions): Disposable {
  const timer = setInterval(async () => {
    // A store that cannot be read is reported as an outage.
    const version = await readVersion().catch(() => schemaVersion)
    if (version > schemaVersion) {
      clearInterval(timer)
      onNewerVersion(version)
    }
  }, checkEveryMs).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
