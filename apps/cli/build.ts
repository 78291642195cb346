import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundle } from '@plant-store/harness/bundle'

const http = fileURLToPath(import.meta.resolve('@plant-store/http/server'))
const browse = fileURLToPath(import.meta.resolve('@plant-store/browse'))
await bundle(
  {
    main: 'src/main.ts',
    'http-thread': fileURLToPath(import.meta.resolve('@plant-store/api/http-thread')),
    'checkpointer-thread': fileURLToPath(
      import.meta.resolve('@plant-store/engine/checkpointer'),
    ),
    'writer-thread': fileURLToPath(import.meta.resolve('@plant-store/engine/writer')),
  },
  { docs: join(http, '../docs'), browse: join(browse, '..') },
)
