import { readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export type StoreLocation =
  | { readonly kind: 'file'; readonly file: string }
  /** A URL for each host of the database. */
  | {
      readonly kind: 'postgres'
      readonly hosts: readonly string[]
      readonly poolMode: PoolMode
    }

/** How long a client of a pooler, such as pgbouncer, keeps a connection of the server. */
export type PoolMode = 'session' | 'transaction'

/** Relative to the working directory. */
export const defaultStoreUrl = 'file:data/plant-store.db'

/** The files that SQLite keeps beside a store in use. It takes any file of these names for the store's own. */
export const sideFileSuffixes = ['-wal', '-shm', '-journal'] as const

/**
 * @param url `file:` and a path (relative to the working directory, or `file:///` and an absolute one), or
 *   `postgres://user:password@host:port/database` with one or more hosts, separated by commas
 * @throws Error that completes "DATABASE_URL …"
 */
export function parseStoreUrl(url: string): StoreLocation {
  if (/^postgres(ql)?:/.test(url)) {
    return parseServerUrl(url)
  }
  const path = /^file:([^?#]+)$/.exec(url)?.[1]
  const hasHost = path !== undefined && /^\/\/(?!\/)/.test(path)
  if (path === undefined || hasHost) {
    throw new Error(urlForms)
  }

  return { kind: 'file', file: parseFilePath(path) }
}

const urlForms =
  'must be file: and a path (with %3F for ? and %23 for #), such as file:data/plant-store.db, or like postgres://user:password@host:5432/database'

/** @param path percent-encoded, as it follows `file:` */
function parseFilePath(path: string): string {
  const shellWord = /^~[^/]*|\$(?:\w+|\{\w+\})/.exec(path)?.[0]
  if (shellWord !== undefined) {
    throw new Error(
      `contains ${shellWord}, which only a shell replaces: write the path out, or %7E for ~ and %24 for $`,
    )
  }

  const file = decodePath(path)
  // SQLite would open a database in memory.
  if (['', ':memory:'].includes(file.trim())) {
    throw new Error(urlForms)
  }
  // SQLite would open a file without it, and other programs one with it.
  if (file !== file.trim()) {
    throw new Error('names a file that begins or ends with white space: rename the file')
  }
  return file
}

function decodePath(path: string): string {
  requireDecodable(path)
  return path.startsWith('///') ? fileURLToPath(`file:${path}`) : decodeURIComponent(path)
}

/** @throws Error that does not show the text, which may be a password */
function requireDecodable(text: string): void {
  try {
    decodeURIComponent(text)
  } catch {
    throw new Error('has a % that encodes no character: write %25 for %')
  }
}

/** The names are libpq's, but for `pool_mode`, which is pgbouncer's. */
const serverParameters = [
  ...['host', 'port', 'user', 'password', 'application_name', 'options', 'pool_mode'],
  ...['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation'],
]
/** pg takes the middle ones for the last, and warns that it will not always. */
const sslModes = ['disable', 'no-verify', 'require', 'verify-ca', 'verify-full']

/**
 * Parses several hosts in one URL, which libpq allows and the URL standard does not. Behind the hosts an @ is refused: before
 * it may be the rest of a password, and a message would show that as the database.
 */
function parseServerUrl(url: string): StoreLocation {
  const [, credentials = '', hosts = '', path = '', query = ''] =
    /^postgres(?:ql)?:\/\/([^@/?#]*@)?([^@/?#]*)(\/[^@?#]*)?(?:\?([^@#]*))?$/.exec(url) ??
    []
  requireDecodable(credentials + hosts + path)
  const parameters = Object.fromEntries(new URLSearchParams(query))
  const { sslmode, pool_mode: poolMode = 'session', ...others } = parameters
  for (const name of Object.keys(parameters)) {
    if (!serverParameters.includes(name)) {
      throw new Error(
        `has an unknown parameter ${name}: it takes ${serverParameters.join(', ')}`,
      )
    }
  }
  if (sslmode !== undefined && !sslModes.includes(sslmode)) {
    throw new Error(
      'has an unknown sslmode: it must be disable, no-verify, require, verify-ca or verify-full',
    )
  }
  if (poolMode !== 'session' && poolMode !== 'transaction') {
    throw new Error(`has an unknown pool_mode: it must be session or transaction`)
  }
  // With another, pg connects to nothing and reports nothing.
  const { port = '5432' } = others
  if (!(/^\d+$/.test(port) && Number(port) <= 65_535)) {
    throw new Error('has a wrong port: it must be a number up to 65535')
  }

  const isVerified = sslmode === 'require' || sslmode === 'verify-ca'
  const rest = `${new URLSearchParams({ ...others, ...(sslmode && { sslmode: isVerified ? 'verify-full' : sslmode }) })}`
  const urls = hosts
    .split(',')
    .map(host => `postgres://${credentials}${host}${path}${rest && `?${rest}`}`)
  const isSocket = hosts === '' && others['host']
  if (
    !(isSocket || hosts.split(',').every(Boolean)) ||
    !urls.every(each => URL.canParse(each))
  ) {
    throw new Error(
      'must be like postgres://user:password@host:5432/database, with special characters percent-encoded',
    )
  }
  return { kind: 'postgres', hosts: urls, poolMode }
}

/**
 * Returns the full path of a store or its name without a password, for messages and logs. Throws like
 * {@link parseStoreUrl}.
 */
export function storageName(url: string): string {
  const location = parseStoreUrl(url)
  if (location.kind === 'file') {
    return resolve(location.file)
  }
  const hosts = location.hosts.map(host => new URL(host))
  const { username = '', pathname = '' } = hosts[0] ?? {}
  return `postgres://${username && `${username}@`}${hosts.map(({ host }) => host).join(',')}${pathname}`
}

/** Returns the full paths of a store's file and of those that SQLite keeps beside it. Empty for a database. */
export function storeFiles(url: string): readonly string[] {
  const location = parseStoreUrl(url)
  return location.kind === 'file' ? filesOf(followLinks(location.file)) : []
}

/** Returns a file and those that SQLite keeps beside it. */
export function filesOf(file: string): readonly string[] {
  return ['', ...sideFileSuffixes].map(suffix => file + suffix)
}

/**
 * Returns where a file is, or where SQLite would create it, and keeps its WAL: every symbolic link is followed, also to
 * what does not exist. What cannot be read stays as it is, and opening it fails.
 */
export function followLinks(file: string, linksMax = 40): string {
  try {
    return realpathSync.native(file)
  } catch {
    const folder = dirname(file)
    if (folder === file || linksMax === 0) {
      return resolve(file)
    }
    const found = join(followLinks(folder, linksMax - 1), basename(file))
    const target = targetOf(found)
    if (target === undefined) {
      return found
    }
    return followLinks(
      isAbsolute(target) ? target : `${dirname(found)}/${target}`,
      linksMax - 1,
    )
  }
}

function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link)
  } catch {
    return undefined
  }
}
