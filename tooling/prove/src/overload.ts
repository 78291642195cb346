import type { Part } from './part.ts'
export const overloadPart: Part = {
  name: 'overload',
  share: 0.15,
  run: async () => ({ tried: '', times: 0, failures: [] }),
}
