import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundle } from '@plant-store/bundle'

const pathOf = (specifier: string) => fileURLToPath(import.meta.resolve(specifier))
await bundle(
  {
    main: 'src/main.ts',
    'http-thread': pathOf('@plant-store/api/http-thread'),
    'writer-thread': pathOf('@plant-store/persistence/writer'),
  },
  { docs: join(pathOf('@plant-store/http'), '../docs') },
)
