import { compileEntities, postgresDialect, sqliteDialect } from '@plant-store/engine'
import { entities } from '@plant-store/persistence'
import { expect, test } from 'vitest'

test.each([sqliteDialect, postgresDialect])(
  'on $name the columns of a plant may have any name, as each is quoted',
  dialect => {
    const { names } = compileEntities(entities, dialect)
    const ofPlants = [...names.keys()]
      .map(({ sql }) => sql)
      .filter(sql => /\b(plants|outbox)\b/.test(sql) && /\bname\b/.test(sql))
    expect(ofPlants.length).toBeGreaterThan(6)
    for (const sql of ofPlants) expect(sql).not.toMatch(/(?<!")\bname\b/)
  },
)
