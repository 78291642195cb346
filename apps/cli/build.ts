import { bundleProgram } from '@plant-store/api/bundle'

await bundleProgram('src/main.ts')
