import { join } from 'node:path'
import {
  defaultStoreUrl,
  parseStoreUrl,
  storageName,
  storeFiles,
} from '@plant-store/engine'
import { expect, test } from 'vitest'

const onServer = (...hosts: string[]) => ({
  kind: 'postgres',
  hosts,
  poolMode: 'session',
})

test.each([
  [
    defaultStoreUrl,
    { kind: 'file', file: 'data/plant-store.db' },
    `${process.cwd()}/data/plant-store.db`,
  ],
  [
    'file:data/plants.db',
    { kind: 'file', file: 'data/plants.db' },
    `${process.cwd()}/data/plants.db`,
  ],
  ['file:/data/plants.db', { kind: 'file', file: '/data/plants.db' }, '/data/plants.db'],
  ['file:///data/a%20b%3F.db', { kind: 'file', file: '/data/a b?.db' }, '/data/a b?.db'],
  ['file:%7E/%24HOME', { kind: 'file', file: '~/$HOME' }, `${process.cwd()}/~/$HOME`],
  ['file:data/~a$', { kind: 'file', file: 'data/~a$' }, `${process.cwd()}/data/~a$`],
  ['file:a%20b%23', { kind: 'file', file: 'a b#' }, `${process.cwd()}/a b#`],
  [
    'postgres://flora:secret@db:5432/plants',
    onServer('postgres://flora:secret@db:5432/plants'),
    'postgres://flora@db:5432/plants',
  ],
  [
    'postgresql://flora:se%40cret@a,b:6432/plants?sslmode=require',
    // pg's word for what it does, without its warning.
    onServer(
      'postgres://flora:se%40cret@a/plants?sslmode=verify-full',
      'postgres://flora:se%40cret@b:6432/plants?sslmode=verify-full',
    ),
    'postgres://flora@a,b:6432/plants',
  ],
  ['postgres://db', onServer('postgres://db'), 'postgres://db'],
  [
    'postgres://u:%40%2F@[::1]:5/d',
    onServer('postgres://u:%40%2F@[::1]:5/d'),
    'postgres://u@[::1]:5/d',
  ],
  [
    'postgres://db/plants?pool_mode=transaction&sslmode=no-verify&options=-c%20search_path%3Da',
    {
      ...onServer('postgres://db/plants?options=-c+search_path%3Da&sslmode=no-verify'),
      poolMode: 'transaction',
    },
    'postgres://db/plants',
  ],
  [
    'postgres:///plants?host=/run/postgresql',
    onServer('postgres:///plants?host=%2Frun%2Fpostgresql'),
    'postgres:///plants',
  ],
  [
    'postgres:///plants?user=flora&host=/run',
    onServer('postgres:///plants?user=flora&host=%2Frun'),
    'postgres:///plants',
  ],
])('%s names a store', (url, location, name) => {
  expect(parseStoreUrl(url)).toEqual(location)
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
  `has an unknown parameter ${name}: it takes host, port, user, password, application_name, options, pool_mode, sslmode, sslrootcert, sslcert, sslkey, sslnegotiation`
test.each([
  ['', fileForm],
  ['file:', fileForm],
  ['file::memory:', fileForm],
  ['file:a ', whiteSpace],
  ['file: a', whiteSpace],
  ['file:a%20', whiteSpace],
  ['file:a\r', whiteSpace],
  ['file:///data/a%0A', whiteSpace],
  ['file:%3Amemory%3A', fileForm],
  ['file://host/plants.db', fileForm],
  ['file:a?mode=ro', fileForm],
  ['file:a#b', fileForm],
  ['xfile:a', fileForm],
  ['file:data/100%.db', notDecodable],
  ['file:///data/100%.db', notDecodable],
  ['postgres://u:50%@db/plants', notDecodable],
  ['postgres://u:p@db/100%zz', notDecodable],
  ['file:~/plants.db', shellWord('~')],
  ['file:~flora/plants.db', shellWord('~flora')],
  ['file:$HOME/plants.db', shellWord('$HOME')],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what a shell replaces
  ['file:/data/${STAGE}.db', shellWord('${STAGE}')],
  ['http://a/b', fileForm],
  ['postgres:plants', serverForm],
  ['postgres://', serverForm],
  ['postgres://u:p/ss@db/plants', serverForm],
  ['postgres:///plants', serverForm],
  ['postgres:///plants?host=', serverForm],
  ['postgres://a,/plants', serverForm],
  ['postgres://,a/plants?host=/run', serverForm],
  ['postgres://a,b:port/plants', serverForm],
  ['postgres://a b/plants', serverForm],
  ['postgres://u:p@ss@db/plants', serverForm],
  ['postgres://db:port/plants', serverForm],
  ['postgres://db/plants#a', serverForm],
  ['postgres://db/plants?sslmod=verify-full', unknown('sslmod')],
  ['postgres://db/plants?sslmode=disable&query_timeout=1', unknown('query_timeout')],
  // Each may have a password with special characters, which no message shows.
  ['postgres://u:12/secret@db/plants', serverForm],
  ['postgres://u:12,13/secret@db/plants', serverForm],
  ['postgres://u:1@2/secret@db/plants', serverForm],
  ['postgres://u:12?secret@db/plants', serverForm],
  ['postgres://u:12?user=secret@db/plants', serverForm],
  ['postgres://u:12/?host=secret@db/plants', serverForm],
  ['postgres://u:12#secret@db/plants', serverForm],
  [
    'postgres://db/plants?sslmode=verify_full',
    'has an unknown sslmode: it must be disable, no-verify, require, verify-ca or verify-full',
  ],
  ['postgres://db/plants?port=x', 'has a wrong port: it must be a number up to 65535'],
  [
    'postgres://db/plants?port=65536',
    'has a wrong port: it must be a number up to 65535',
  ],
  [
    'postgres://db/plants?pool_mode=statement',
    'has an unknown pool_mode: it must be session or transaction',
  ],
])('%j names none', (url, message) => {
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
