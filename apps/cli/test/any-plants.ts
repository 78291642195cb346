import type { Plant } from '@plant-store/domain'
import { edgeIds, plant } from '@plant-store/domain/testing'
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
    const tag = random.below(3) > 0 ? anyText() : undefined
    return plant(id, `-${anyText()}-`, tag)
  })
}

/**
 * Returns a plant for each piece of text, in its name and alone as its tag, and for one
 * that is longer than a page of a disk.
 */
export function eachPiece(): Plant[] {
  const texts = ['', ...pieces].map((text, n) =>
    plant(BigInt(100 + n), `-${text}-`, text),
  )
  return [...texts, plant(99n, 'long', '🌱"'.repeat(5_000))]
}
