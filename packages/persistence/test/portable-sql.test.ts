import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** Features of PostgreSQL that databases that shard lack, or leave without effect. */
const ofPostgresAlone = /\b(xmax|xmin|ctid)\b|advisory|lock table/gi

/** Sources that may use one, because no create, read or page waits for it. */
const allowed: Readonly<Record<string, string>> = {
  'engine/src/postgres/migrate.ts': 'creates or migrates the tables, once a release',
  'persistence/src/webhooks/statements.ts': 'adds a webhook, a few times a year',
}

const packages = join(import.meta.dirname, '../..')

function sourcesIn(folder: string): string[] {
  const names = readdirSync(join(packages, folder), { recursive: true, encoding: 'utf8' })
  return names.filter(name => name.endsWith('.ts')).map(name => `${folder}/${name}`)
}

test('only rare operations use what databases that shard lack', () => {
  const sources = [...sourcesIn('engine/src'), ...sourcesIn('persistence/src')]

  const found = sources.flatMap(source => {
    const text = readFileSync(join(packages, source), 'utf8')
    return text.match(ofPostgresAlone) === null ? [] : [source]
  })

  expect(sources.length).toBeGreaterThan(40)
  expect(found.toSorted()).toEqual(Object.keys(allowed).toSorted())
})
