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

/**
 * The files that SQLite keeps beside a store in use. It takes any file of these names for
 * the store's own.
 */
export const sideFileSuffixes = ['-wal', '-shm', '-journal'] as const

/**
 * @param url one of two forms: `file:` and a path (relative to the working directory, or
 *   `file:///` and an absolute one), or `postgres://user:password@host:port/database`
 *   with one or more hosts, separated by commas
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
  if (path.startsWith('///')) {
    return fileURLToPath(`file:${path}`)
  }
  return decodeURIComponent(path)
}

/** @throws Error that does not show the text, which may be a password */
function requireDecodable(text: string): void {
  try {
    decodeURIComponent(text)
  } catch {
    throw new Error('has a % that encodes no character: write %25 for %')
  }
}

/** The names are those of libpq, except for `pool_mode`, which is that of pgbouncer. */
const serverParameters = [
  'host',
  'port',
  'user',
  'password',
  'application_name',
  'options',
  'pool_mode',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslnegotiation',
]

const sslModes = ['disable', 'no-verify', 'require', 'verify-ca', 'verify-full']

/**
 * The pg driver handles these like `verify-full`, and warns that it will not always do
 * so.
 */
const sslModesOfFullChecks = ['require', 'verify-ca']

const serverForm =
  'must be like postgres://user:password@host:5432/database, with special characters percent-encoded'

/** The parts of a URL with several hosts, as they are written. */
interface ServerUrlParts {
  /** The user and the password with the @ after them, or an empty text. */
  readonly credentials: string
  /** The hosts with their ports, separated by commas. */
  readonly hosts: string
  readonly path: string
  readonly query: string
}

function parseServerUrl(url: string): StoreLocation {
  const { credentials, hosts, path, query } = splitServerUrl(url)
  requireDecodable(credentials + hosts + path)
  const parameters = new Map(new URLSearchParams(query))
  requireKnownParameters(parameters)

  const poolMode = poolModeOf(parameters)
  const hostParameters = hostParametersOf(parameters)
  const isSocket = hosts === '' && Boolean(parameters.get('host'))
  const urls = hosts
    .split(',')
    .map(host => `postgres://${credentials}${host}${path}${hostParameters}`)
  const isEveryHostNamed = hosts.split(',').every(host => host !== '')
  const isEveryUrlValid = urls.every(hostUrl => URL.canParse(hostUrl))
  if (!(isSocket || isEveryHostNamed) || !isEveryUrlValid) {
    throw new Error(serverForm)
  }

  return { kind: 'postgres', hosts: urls, poolMode }
}

/**
 * Splits a URL with several hosts, which libpq allows and the URL standard does not. An @
 * behind the hosts fits none of the parts: what stands before it may be the rest of a
 * password, and a message would show that as the name of the database.
 */
function splitServerUrl(url: string): ServerUrlParts {
  const parts =
    /^postgres(?:ql)?:\/\/([^@/?#]*@)?([^@/?#]*)(\/[^@?#]*)?(?:\?([^@#]*))?$/.exec(url)
  if (parts === null) {
    throw new Error(serverForm)
  }
  const [, credentials = '', hosts = '', path = '', query = ''] = parts
  return { credentials, hosts, path, query }
}

function requireKnownParameters(parameters: ReadonlyMap<string, string>): void {
  for (const name of parameters.keys()) {
    if (!serverParameters.includes(name)) {
      throw new Error(
        `has an unknown parameter ${name}: it takes ${serverParameters.join(', ')}`,
      )
    }
  }

  const sslMode = parameters.get('sslmode')
  if (sslMode !== undefined && !sslModes.includes(sslMode)) {
    throw new Error(
      'has an unknown sslmode: it must be disable, no-verify, require, verify-ca or verify-full',
    )
  }

  // The pg driver connects to nothing if the port is wrong, and reports nothing.
  const port = parameters.get('port') ?? '5432'
  const isPort = /^\d+$/.test(port) && Number(port) <= 65_535
  if (!isPort) {
    throw new Error('has a wrong port: it must be a number up to 65535')
  }
}

function poolModeOf(parameters: ReadonlyMap<string, string>): PoolMode {
  const poolMode = parameters.get('pool_mode') ?? 'session'
  if (poolMode !== 'session' && poolMode !== 'transaction') {
    throw new Error('has an unknown pool_mode: it must be session or transaction')
  }
  return poolMode
}

/** Returns the parameters that the driver gets for each host, with the ? before them. */
function hostParametersOf(parameters: ReadonlyMap<string, string>): string {
  const forDriver = new URLSearchParams()
  for (const [name, value] of parameters) {
    if (name !== 'pool_mode' && name !== 'sslmode') {
      forDriver.append(name, value)
    }
  }

  const sslMode = parameters.get('sslmode')
  if (sslMode !== undefined) {
    const isFullCheck = sslModesOfFullChecks.includes(sslMode)
    forDriver.append('sslmode', isFullCheck ? 'verify-full' : sslMode)
  }
  return forDriver.size === 0 ? '' : `?${forDriver}`
}

/**
 * Returns the full path of a store's file, or the name of a database without a password,
 * for messages and logs. Throws like {@link parseStoreUrl}.
 */
export function storageName(url: string): string {
  const location = parseStoreUrl(url)
  if (location.kind === 'file') {
    return resolve(location.file)
  }

  const urls = location.hosts.map(host => new URL(host))
  const hosts = urls.map(({ host }) => host).join(',')
  const { username = '', pathname = '' } = urls[0] ?? {}
  const user = username === '' ? '' : `${username}@`
  return `postgres://${user}${hosts}${pathname}`
}

/**
 * Returns the full paths of a store's file and of those that SQLite keeps beside it.
 * There are none for a database on a server.
 */
export function storeFiles(url: string): readonly string[] {
  const location = parseStoreUrl(url)
  if (location.kind === 'postgres') {
    return []
  }
  return filesOf(followLinks(location.file))
}

/** Returns a file and those that SQLite keeps beside it. */
export function filesOf(file: string): readonly string[] {
  return ['', ...sideFileSuffixes].map(suffix => file + suffix)
}

/**
 * Returns where a file is, or where SQLite would create it: the WAL is kept beside that
 * path. Every symbolic link is followed, even to a file that does not exist. A path that
 * cannot be read stays as it is, and opening it fails.
 */
export function followLinks(file: string, linksMax = 40): string {
  try {
    return realpathSync.native(file)
  } catch {
    return followLinksByFolder(file, linksMax)
  }
}

/** Follows the links of a path that does not exist, from its folder on. */
function followLinksByFolder(file: string, linksMax: number): string {
  const folder = dirname(file)
  if (folder === file || linksMax === 0) {
    return resolve(file)
  }

  const realFolder = followLinks(folder, linksMax - 1)
  const path = join(realFolder, basename(file))
  const target = targetOf(path)
  if (target === undefined) {
    return path
  }
  if (isAbsolute(target)) {
    return followLinks(target, linksMax - 1)
  }
  return followLinks(`${realFolder}/${target}`, linksMax - 1)
}

function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link)
  } catch {
    return undefined
  }
}
