import { readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tryTo } from './errors.ts'

export type StoreLocation =
  | { readonly kind: 'file'; readonly file: string }
  /** A URL for each host of the database. */
  | {
      readonly kind: 'postgres'
      readonly hosts: readonly string[]
      readonly poolMode: PoolMode
      /** The database as a URL without a password, for messages and logs. */
      readonly name: string
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
  // Two slashes begin a host, and three a path.
  const path = /^file:(?!\/\/(?!\/))([^?#]+)$/.exec(url)?.[1]
  if (path === undefined) {
    throw new Error(urlForms)
  }

  return { kind: 'file', file: parseFilePath(path) }
}

const urlForms =
  'must be file: and a path (with %3F for ? and %23 for #), such as file:data/plant-store.db, or like postgres://user:password@host:5432/database'

/** @param path percent-encoded, as it follows `file:` */
function parseFilePath(path: string) {
  const shellWord = /^~[^/]*|\$(?:\w+|\{\w+\})/.exec(path)?.[0]
  if (shellWord !== undefined) {
    throw new Error(
      `contains ${shellWord}, which only a shell replaces: write the path out, or %7E for ~ and %24 for $`,
    )
  }

  requireDecodable(path)
  const file = path.startsWith('///')
    ? fileURLToPath(`file:${path}`)
    : decodeURIComponent(path)
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

/** @throws Error that does not show the text, which may be a password */
function requireDecodable(text: string) {
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
  'dbname',
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

/**
 * The values that parameters may have. The pg driver handles `require` and `verify-ca`
 * like `verify-full`.
 */
const parameterChoices: Readonly<Record<string, readonly string[]>> = {
  sslmode: ['disable', 'no-verify', 'require', 'verify-ca', 'verify-full'],
  sslnegotiation: ['postgres', 'direct'],
  pool_mode: ['session', 'transaction'],
}

const serverForm =
  'must be like postgres://user:password@host:5432/database, with special characters percent-encoded'

/**
 * Splits a URL as libpq does: several hosts have commas between them, a parameter
 * replaces what stands before the `?`, and a + is a +. The URL standard has other rules.
 *
 * An @ behind the hosts fits none of the parts: what stands before it may be the rest of
 * a password, and a message would show that as the name of the database.
 */
function parseServerUrl(url: string): StoreLocation {
  const parts =
    /^postgres(?:ql)?:\/\/(?:([^:@/?#\s]*)(?::([^@/?#\s]*))?@)?([^@/?#\s]*)(?:\/([^@?#\s]*))?(?:\?([^@#\s]*))?$/.exec(
      url,
    )
  if (parts === null) {
    throw new Error(serverForm)
  }
  requireDecodable(url)

  const [, account = '', password = '', authority = '', path = '', query = ''] = parts
  const parameters: Readonly<Record<string, string>> = {
    user: decodeURIComponent(account),
    password: decodeURIComponent(password),
    dbname: decodeURIComponent(path),
    ...Object.fromEntries(new URLSearchParams(query.replaceAll('+', '%2B'))),
  }
  requireKnownParameters(parameters)

  const { host, port, pool_mode = 'session', sslmode = '', ...others } = parameters
  const hosts = hostsOf(authority, host, port)
  const isFullCheck = sslmode === 'require' || sslmode === 'verify-ca'
  const shared = { ...others, sslmode: isFullCheck ? 'verify-full' : sslmode }
  const { user, dbname } = others
  const name = [
    user && `${encodeURIComponent(user)}@`,
    `${hosts.map(nameOf)}`,
    dbname && `/${encodeURIComponent(dbname)}`,
  ]
  return {
    kind: 'postgres',
    hosts: hosts.map(each => {
      const given = Object.entries({ ...each, ...shared }).filter(([, value]) => value)
      return `postgres:///?${new URLSearchParams(given)}`
    }),
    // The choices were checked.
    poolMode: pool_mode as PoolMode,
    name: `postgres://${name.join('')}`,
  }
}

/**
 * Returns the hosts, of which several must each have a name. A part that is empty is the
 * driver's default.
 *
 * @param host what the parameter says: names, addresses, or folders of sockets
 */
function hostsOf(authority: string, host?: string, port?: string) {
  const written = authority.split(',').map(each => {
    const parts = /^(\[[^[\]]*\]|[^:[\]]*)(?::(\d*))?$/.exec(each)
    if (parts === null) {
      throw new Error(serverForm)
    }
    const [, name = '', port = ''] = parts
    return { host: decodeURIComponent(name.replace(/^\[(.*)\]$/, '$1')), port }
  })
  const names = host?.split(',') ?? written.map(each => each.host)
  const ports = port?.split(',') ?? written.map(each => each.port)

  const isEveryHostNamed = names.every(name => name !== '')
  const mayLackName = names.length === 1 && host === undefined
  const isPortOfEach = ports.length === 1 || ports.length === names.length
  if (!(isEveryHostNamed || mayLackName) || !isPortOfEach) {
    throw new Error(serverForm)
  }
  // The pg driver connects to nothing if the port is wrong, and reports nothing.
  if (!ports.every(port => /^\d*$/.test(port) && Number(port) <= 65_535)) {
    throw new Error('has a wrong port: it must be a number up to 65535')
  }
  return names.map((name, index) => ({
    host: name,
    port: ports[index] ?? ports[0] ?? '',
  }))
}

function requireKnownParameters(parameters: Readonly<Record<string, string>>) {
  for (const [name, value] of Object.entries(parameters)) {
    if (!serverParameters.includes(name)) {
      throw new Error(
        `has an unknown parameter ${name}: it takes ${serverParameters.join(', ')}`,
      )
    }
    const choices = parameterChoices[name]
    if (choices !== undefined && !choices.includes(value)) {
      throw new Error(`has an unknown ${name}: it must be one of ${choices.join(', ')}`)
    }
  }
}

/**
 * Returns the full path of a store's file, or the name of a database without a password,
 * for messages and logs. Throws like {@link parseStoreUrl}.
 */
export function storageName(url: string): string {
  const location = parseStoreUrl(url)
  return location.kind === 'file' ? resolve(location.file) : location.name
}

/** Returns a host as URLs have it. */
function nameOf({ host, port }: Record<'host' | 'port', string>) {
  const name = host.includes(':') ? `[${host}]` : encodeURIComponent(host)
  return port === '' ? name : `${name}:${port}`
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
    const folder = dirname(file)
    if (folder === file || linksMax === 0) {
      return resolve(file)
    }
    const realFolder = followLinks(folder, linksMax - 1)
    const path = join(realFolder, basename(file))
    const target = tryTo(() => readlinkSync(path))
    if (target === undefined) {
      return path
    }
    const isFull = isAbsolute(target)
    return followLinks(isFull ? target : `${realFolder}/${target}`, linksMax - 1)
  }
}
