/** What somebody needs who opens a plant. The page fetches it once the list is shown. */

export { PlantForm } from './plant-form.ts'
export { askToDiscard } from './question.ts'
