import { type Plant, parsePlant } from '@plant-store/domain'
import { edgeIds, fullPlant } from '@plant-store/domain/testing'
import { createRandom } from '@plant-store/harness/random'

const pieces = [
  ...'",\n\r \t\\\';#\u0001\u001f\u007f\u2028\ufeffé🌱𠮷漢\uffff\ufffd',
  ...['""', '\r\n', '\\n', 'e\u0301', 'אב', 'plain', 'id', 'null', '=1+1', '{"id":1}'],
]

/** Ids from all over int64 and its ends, whatever texts a plant may have, and none. */
export function anyPlants(seed: number, count: number): Plant[] {
  const random = createRandom(seed)
  const anyPiece = () => random.pick(pieces)
  const anyText = () => Array.from({ length: random.below(5) }, anyPiece).join('')
  const anyId = () => {
    const high = BigInt(random.below(2 ** 32)) << 32n
    return BigInt.asIntN(64, high + BigInt(random.below(2 ** 32)))
  }
  return Array.from({ length: count }, (_, n) => {
    const id = edgeIds[n] ?? anyId()
    const full = fullPlant(id, anyText())
    const required = { id, name: anyText() }
    return parsePlant(random.below(3) > 0 ? { ...full, ...required } : required)
  })
}

/**
 * Returns a plant for each piece of text alone, as each of its texts, and for one that is
 * longer than a page of a disk.
 */
export function eachPiece(): Plant[] {
  const texts = ['', ...pieces, '🌱"'.repeat(5_000)]
  return texts.map((text, n) => fullPlant(BigInt(100 + n), text))
}
