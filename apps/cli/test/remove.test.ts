import { plant } from '@plant-store/domain/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Place } from './place.ts'

const plants = [
  plant(2n ** 63n - 1n, 'Mint', 'herb'),
  plant(-1n, 'Peppermint', 'herb'),
  plant(3n, 'Oak', 'tree'),
  plant(4n, 'ÉLM'),
]

let place: Place
beforeEach(async () => {
  place = new Place()
  await place.createStore(plants)
})
afterEach(() => place[Symbol.asyncDispose]())

test('an export has the plants with a tag and a text in their name', () =>
  place.session(`
    $ export --tag herb
    {"id":-1,"name":"Peppermint","tag":"herb"}
    {"id":9223372036854775807,"name":"Mint","tag":"herb"}
    ! 2 plants exported in …s
    $ export --name-contains lm
    {"id":4,"name":"ÉLM"}
    ! 1 plant exported in …s
    $ export --name-contains é
    ! 0 plants exported in …s
    $ export --tag herb --name-contains PP
    {"id":-1,"name":"Peppermint","tag":"herb"}
    ! 1 plant exported in …s
    $ export --name-contains=
    ! plant-store: …It must have at least one character. (see --help)
    [2]`))

test('a removal takes what an export wrote', async () => {
  const { stdout } = await place.run('export --tag herb')

  const removal = await place.run('remove -', stdout)

  expect(removal.stdout).toMatch(/^2 plants removed in \d+s \([\d,]+\/s\)\n$/)
  await place.session(`
    $ export
    {"id":3,"name":"Oak","tag":"tree"}
    {"id":4,"name":"ÉLM"}
    ! 2 plants exported in …s`)
})

test('a removal needs ids alone, and ends at a line without one', () =>
  place.session(`
    $ remove - --dry-run
    < id
    < 3
    < 5
    1 stored plant, 1 not stored in ${place.store}; nothing was removed
    $ remove - --json
    < ID
    < 4
    < 5
    {"read":2,"removed":1,"missing":1,"dryRun":false,"seconds":…,"interrupted":false}
    $ remove -
    < {"id":3}
    < {"name":"a"}
    < {"id":-1}
    ! plant-store: line 2: id must be an integer from … (1 plant removed before)
    [1]
    $ remove - --dry-run --format ndjson
    < null
    ! plant-store: line 1: id must be an integer from … (nothing was removed)
    [1]
    $ remove -
    0 plants removed in 0s (0/s): none is in standard input
    $ export
    {"id":-1,…}
    {"id":9223372036854775807,…}
    ! 2 plants exported in …s`))
