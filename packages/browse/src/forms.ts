/** The forms of plants. The page fetches this file once the list is shown. */

export { PlantForm } from './plant-form.ts'
export { askToDiscard } from './question.ts'
