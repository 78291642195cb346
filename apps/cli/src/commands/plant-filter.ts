import { InvalidArgumentError } from '@commander-js/extra-typings'
import type { Plant } from '@plant-store/domain'

/** Selects plants as GET /plants does. */
export interface PlantFilter {
  readonly tag?: string | undefined
  readonly nameContains?: string | undefined
}

export function isSelected(plant: Plant, { tag, nameContains }: PlantFilter): boolean {
  if (tag !== undefined && plant.tag !== tag) {
    return false
  }
  if (nameContains === undefined) {
    return true
  }
  return lowerCase(plant.name).includes(lowerCase(nameContains))
}

export function searchedText(text: string): string {
  if (text === '') {
    throw new InvalidArgumentError('It must have at least one character.')
  }
  return text
}

/** Both databases change A to Z only. */
function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, letter => letter.toLowerCase())
}
