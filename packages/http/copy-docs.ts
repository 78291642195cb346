import { copyFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import swaggerUi from 'swagger-ui-dist/absolute-path.js'

// The API reference beside the code that serves it, Swagger UI's files included: its package would report its installation.
const to = join(import.meta.dirname, 'dist/docs')
cpSync(join(import.meta.dirname, 'docs'), to, { recursive: true })
for (const file of ['swagger-ui-bundle.js', 'swagger-ui.css'])
  copyFileSync(join(swaggerUi(), file), join(to, file))
// Not by the names of these files, for which pnpm would leave our own out.
const terms = ['LICENSE', 'NOTICE'].map(file => readFileSync(join(swaggerUi(), file), 'utf8'))
writeFileSync(join(to, 'swagger-ui-terms.txt'), terms.join('\n'))
