import { type Plant, parsePlant } from '@plant-store/domain'
import { fullPlant } from '@plant-store/domain/testing'
import { createRandom } from '@plant-store/harness/random'

const pieces = [
  ...'",\n\r \t\\\';#\u0001\u001f\u007f\u2028\ufeffé🌱𠮷漢\uffff\ufffd',
  ...['""', '\r\n', '\\n', 'e\u0301', 'אב', 'plain', 'id', 'null', '=1+1', '{"id":1}'],
]

/** Ids from all over int64 and its ends, whatever texts a plant may have, and none. */
export function anyPlants(seed: number, count: number): Plant[] {
  const { below: random } = createRandom(seed)
  const text = () =>
    Array.from({ length: random(5) }, () => pieces[random(pieces.length)]).join('')
  const edges = [-(2n ** 63n), 2n ** 63n - 1n, 0n, -1n, 2n ** 53n + 1n]
  return Array.from({ length: count }, (_, n) => {
    const id =
      edges[n] ??
      BigInt.asIntN(64, (BigInt(random(2 ** 32)) << 32n) + BigInt(random(2 ** 32)))
    const full = fullPlant(id, text())
    return parsePlant(random(3) > 0 ? { ...full, name: text() } : { id, name: text() })
  })
}

/**
 * A plant for each piece of text alone, as each of its texts, and for one that is
 * longer than a page of a disk.
 */
export const eachPiece: readonly Plant[] = ['', ...pieces, '🌱"'.repeat(100_000)].map(
  (text, n) => fullPlant(BigInt(100 + n), text),
)
