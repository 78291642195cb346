export const plantSchema = {
  type: 'object',
  required: ['name'],
  properties: { name: { type: 'string' }, tag: { type: 'string' } },
}

export const newPlantSchema = {
  type: 'object',
  required: ['id', 'name'],
  properties: { id: { type: 'integer' }, ...plantSchema.properties },
}

export const errorSchema = {
  type: 'object',
  required: ['error', 'message'],
  properties: { error: { type: 'integer' }, message: { type: 'string' } },
}
