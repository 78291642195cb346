import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { drawPackages, withPicture } from './picture.ts'

const root = join(import.meta.dirname, '../../..')
const page = join(root, 'docs/architecture.md')
writeFileSync(page, withPicture(readFileSync(page, 'utf8'), drawPackages(root)))
