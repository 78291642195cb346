import { copyFileSync, cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import swaggerUi from 'swagger-ui-dist/absolute-path.js'

// The API reference beside the code that serves it, Swagger UI's files included: its
// package would report its installation.
const to = join(import.meta.dirname, 'dist/docs')
cpSync(join(import.meta.dirname, 'docs'), to, { recursive: true })
for (const file of ['swagger-ui-bundle.js', 'swagger-ui.css']) {
  copyFileSync(join(swaggerUi(), file), join(to, file))
}
// The server sends these to clients that accept gzip.
for (const file of readdirSync(to)) {
  writeFileSync(
    join(to, `${file}.gz`),
    gzipSync(readFileSync(join(to, file)), { level: 9 }),
  )
}
// Not by the names of these files, for which pnpm would leave our own out.
const terms = ['LICENSE', 'NOTICE'].map(file =>
  readFileSync(join(swaggerUi(), file), 'utf8'),
)
writeFileSync(join(to, 'swagger-ui-terms.txt'), terms.join('\n'))
