import { bundleProgram } from './bundle.ts'

await bundleProgram('src/main.ts')
