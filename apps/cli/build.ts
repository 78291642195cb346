import { fileURLToPath } from 'node:url'
import { bundle } from '@plant-store/bundle'

await bundle({
  main: 'src/main.ts',
  'writer-thread': fileURLToPath(import.meta.resolve('@plant-store/persistence/writer')),
})
