import { defaultStoreUrl, parseStoreUrl, storageName, storeFiles } from '@plant-store/persistence'
import { expect, test } from 'vitest'

test.each([
  [defaultStoreUrl, { kind: 'file', file: 'data/plant-store.db' }, `${process.cwd()}/data/plant-store.db`],
  ['file:data/plants.db', { kind: 'file', file: 'data/plants.db' }, `${process.cwd()}/data/plants.db`],
  ['file:/data/plants.db', { kind: 'file', file: '/data/plants.db' }, '/data/plants.db'],
  ['file:///data/a%20b%3F.db', { kind: 'file', file: '/data/a b?.db' }, '/data/a b?.db'],
  ['file:a%20b%23', { kind: 'file', file: 'a b#' }, `${process.cwd()}/a b#`],
  [
    'postgres://flora:secret@db:5432/plants',
    { kind: 'postgres', hosts: ['postgres://flora:secret@db:5432/plants'] },
    'postgres://flora@db:5432/plants',
  ],
  [
    'postgresql://flora:se%40cret@a,b:6432/plants?sslmode=require',
    {
      kind: 'postgres',
      hosts: [
        'postgres://flora:se%40cret@a/plants?sslmode=require',
        'postgres://flora:se%40cret@b:6432/plants?sslmode=require',
      ],
    },
    'postgres://flora@a,b:6432/plants',
  ],
  ['postgres://db', { kind: 'postgres', hosts: ['postgres://db'] }, 'postgres://db'],
  [
    'postgres:///plants?host=/run/postgresql',
    { kind: 'postgres', hosts: ['postgres:///plants?host=/run/postgresql'] },
    'postgres:///plants',
  ],
  [
    'postgres:///plants?user=flora&host=/run',
    { kind: 'postgres', hosts: ['postgres:///plants?user=flora&host=/run'] },
    'postgres:///plants',
  ],
])('%s names a store', (url, location, name) => {
  expect([parseStoreUrl(url), storageName(url)]).toEqual([location, name])
})

const fileForm =
  'must be file: and a path (with %3F for ? and %23 for #), such as file:data/plant-store.db, or like postgres://user:password@host:5432/database'
const serverForm =
  'must be like postgres://user:password@host:5432/database, with special characters percent-encoded'
test.each([
  ['', fileForm],
  ['plants.db', fileForm],
  ['file:', fileForm],
  ['file:%20', fileForm],
  ['file::memory:', fileForm],
  ['file:%3Amemory%3A', fileForm],
  ['file://host/plants.db', fileForm],
  ['file:a?mode=ro', fileForm],
  ['file:a#b', fileForm],
  ['xfile:a', fileForm],
  ['xpostgres://db', fileForm],
  ['http://a/b', fileForm],
  ['postgres:', serverForm],
  ['postgres:///plants', serverForm],
  ['postgres:///plants?host=', serverForm],
  ['postgres://a,/plants', serverForm],
  ['postgres://,a/plants?host=/run', serverForm],
  ['postgres://a,b:port/plants', serverForm],
  ['postgres://a,,b/plants', serverForm],
  ['postgres://a b/plants', serverForm],
  ['postgres://u:p@ss@db/plants', serverForm],
  ['postgres://u:p#ss@db/plants', serverForm],
  ['postgres://db:port/plants', serverForm],
  ['postgres://db/plants#a', serverForm],
])('%j names none', (url, message) => {
  for (const read of [parseStoreUrl, storageName, storeFiles])
    expect(() => read(url)).toThrow(expect.objectContaining({ message }))
})

test('the files of a store are its own and those that SQLite keeps beside it', () => {
  expect(storeFiles('file:a.db')).toEqual(['a.db', 'a.db-wal', 'a.db-shm', 'a.db-journal'])
  expect(storeFiles('postgres://db/plants')).toEqual([])
})
