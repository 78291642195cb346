export interface Plant {
  id: number
  name: string
  tag?: string
}

const properties = { name: { type: 'string' }, tag: { type: 'string' } }

export const plantAnswerSchema = { type: 'object', required: ['name'], properties }

export const plantSchema = {
  type: 'object',
  required: ['id', 'name'],
  properties: { id: { type: 'integer' }, ...properties },
}
