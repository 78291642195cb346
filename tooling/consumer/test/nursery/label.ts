import { type Plant, parsePlant } from '@plant-store/domain'

/** What stands on the label of a seedling: `№ 7 · Ficus · tree`. */
export function labelOf({ id, name, tag }: Plant): string {
  return [`№ ${id}`, name, ...(tag === undefined ? [] : [tag])].join(' · ')
}

/** The seedling that a label is about; it must be one that a plant store would take. */
export function readLabel(label: string): Plant {
  const [number = '', name, tag] = label.split(' · ')
  const digits = /^№ (-?\d+)$/.exec(number)?.[1]
  return parsePlant({ id: digits === undefined ? undefined : BigInt(digits), name, tag })
}
