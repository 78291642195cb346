import { join } from 'node:path'
import {
  defaultStoreUrl,
  parseStoreUrl,
  storageName,
  storeFiles,
} from '@plant-store/engine'
import { assert, expect, test } from 'vitest'

test.each([
  [
    defaultStoreUrl,
    { kind: 'file', file: 'data/plant-store.db' },
    `${process.cwd()}/data/plant-store.db`,
  ],
  ['file:/data/plants.db', { kind: 'file', file: '/data/plants.db' }, '/data/plants.db'],
  ['file:///data/a%20b%3F.db', { kind: 'file', file: '/data/a b?.db' }, '/data/a b?.db'],
  ['file:%7E/%24HOME', { kind: 'file', file: '~/$HOME' }, `${process.cwd()}/~/$HOME`],
])('%s names a store', (url, location, name) => {
  expect(parseStoreUrl(url)).toEqual(location)
  expect(storageName(url)).toBe(name)
})

/** The parameters that the driver gets for a host. */
type HostParameters = Readonly<Record<string, string>>

test.each<{
  url: string
  hosts: readonly HostParameters[]
  name: string
  poolMode?: string
}>([
  { url: 'postgres://', hosts: [{}], name: 'postgres://' },
  {
    url: 'postgres://flora:secret@db:5432/plants',
    hosts: [
      { host: 'db', port: '5432', user: 'flora', password: 'secret', dbname: 'plants' },
    ],
    name: 'postgres://flora@db:5432/plants',
  },
  {
    url: 'postgresql://a,b:6432/plants?sslmode=require',
    hosts: [
      // pg's word for what it does, without its warning.
      { host: 'a', dbname: 'plants', sslmode: 'verify-full' },
      { host: 'b', port: '6432', dbname: 'plants', sslmode: 'verify-full' },
    ],
    name: 'postgres://a,b:6432/plants',
  },
  {
    url: 'postgres:///plants?host=a,b&port=1,2',
    hosts: [
      { host: 'a', port: '1', dbname: 'plants' },
      { host: 'b', port: '2', dbname: 'plants' },
    ],
    name: 'postgres://a:1,b:2/plants',
  },
  {
    url: 'postgres://a,b/?port=1',
    hosts: [
      { host: 'a', port: '1' },
      { host: 'b', port: '1' },
    ],
    name: 'postgres://a:1,b:1',
  },
  {
    url: 'postgres://u:%40%2F%23%3F%25:+@[::1]:5/a%23b%2Fc%25',
    hosts: [{ host: '::1', port: '5', user: 'u', password: '@/#?%:+', dbname: 'a#b/c%' }],
    name: 'postgres://u@[::1]:5/a%23b%2Fc%25',
  },
  {
    url: 'postgres://user:pw@/plants?host=/sock&port=5433',
    hosts: [
      { host: '/sock', port: '5433', user: 'user', password: 'pw', dbname: 'plants' },
    ],
    name: 'postgres://user@%2Fsock:5433/plants',
  },
  {
    url: 'postgres://u:p@a:1/b?host=c&port=2&dbname=d&user=v&password=q+r',
    hosts: [{ host: 'c', port: '2', user: 'v', password: 'q+r', dbname: 'd' }],
    name: 'postgres://v@c:2/d',
  },
  {
    url: 'postgres://db?pool_mode=transaction&sslmode=no-verify&options=-c%20search_path%3Da',
    hosts: [{ host: 'db', options: '-c search_path=a', sslmode: 'no-verify' }],
    name: 'postgres://db',
    poolMode: 'transaction',
  },
])('$url names a store on a server', ({ url, hosts, name, poolMode = 'session' }) => {
  const location = parseStoreUrl(url)

  assert(location.kind === 'postgres', 'the store is on a server')
  const parameters = location.hosts.map(host =>
    Object.fromEntries(new URL(host).searchParams),
  )
  expect(parameters).toEqual(hosts)
  expect(location.poolMode).toBe(poolMode)
  expect(storageName(url)).toBe(name)
})

const fileForm =
  'must be file: and a path (with %3F for ? and %23 for #), such as file:data/plant-store.db, or like postgres://user:password@host:5432/database'
const serverForm =
  'must be like postgres://user:password@host:5432/database, with special characters percent-encoded'
const notDecodable = 'has a % that encodes no character: write %25 for %'
const whiteSpace = 'names a file that begins or ends with white space: rename the file'
const shellWord = (word: string) =>
  `contains ${word}, which only a shell replaces: write the path out, or %7E for ~ and %24 for $`
const unknown = (name: string) =>
  `has an unknown parameter ${name}: it takes host, port, dbname, user, password, application_name, options, pool_mode, sslmode, sslrootcert, sslcert, sslkey, sslnegotiation`
/** URLs that name no store, by the words of the refusal. */
const refused: Readonly<Record<string, readonly string[]>> = {
  [fileForm]: [
    '',
    'file:%3Amemory%3A',
    'file://host/plants.db',
    'file:a?mode=ro',
    'http://a/b',
  ],
  [whiteSpace]: ['file:a%20', 'file:///data/a%0A'],
  [notDecodable]: [
    'file:data/100%.db',
    'postgres://u:50%@db/plants',
    'postgres://db/plants?password=100%',
  ],
  [shellWord('~')]: ['file:~/plants.db'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what a shell replaces
  [shellWord('${STAGE}')]: ['file:/data/${STAGE}.db'],
  [serverForm]: [
    'postgres:/plants',
    'postgres://u:p/ss@db/plants',
    'postgres:///plants?host=',
    'postgres://,a/plants?host=/run',
    'postgres:///plants?host=a,b&port=1,2,3',
    'postgres://db/plants\n',
    'postgres://[::1/plants',
    'postgres://u:p@ss@db/plants',
    'postgres://db:port/plants',
    'postgres://db/plants#a',
    // Each may have a password with special characters, which no message shows.
    'postgres://u:12/secret@db/plants',
    'postgres://u:12/?host=secret@db/plants',
    'postgres://u:12#secret@db/plants',
  ],
  [unknown('sslmod')]: ['postgres://db/plants?sslmod=verify-full'],
  'has an unknown sslmode: it must be one of disable, no-verify, require, verify-ca, verify-full':
    ['postgres://db/plants?sslmode=verify_full'],
  'has a wrong port: it must be a number up to 65535': [
    'postgres://db:65536/plants',
    'postgres://db/plants?port=65536',
  ],
  'has an unknown pool_mode: it must be one of session, transaction': [
    'postgres://db/plants?pool_mode=statement',
  ],
}

const refusedUrls = Object.entries(refused).flatMap(([message, urls]) =>
  urls.map(url => [url, message] as const),
)

test.each(refusedUrls)('%j names no store', (url, message) => {
  const refusal = expect.objectContaining({ message })

  expect(() => parseStoreUrl(url)).toThrow(refusal)
  expect(() => storageName(url)).toThrow(refusal)
  expect(() => storeFiles(url)).toThrow(refusal)
})

test('the files of a store are its own and those that SQLite keeps beside it', () => {
  const file = join(process.cwd(), 'a.db')
  expect(storeFiles('file:a.db')).toEqual([
    file,
    `${file}-wal`,
    `${file}-shm`,
    `${file}-journal`,
  ])
  expect(storeFiles('postgres://db/plants')).toEqual([])
})
