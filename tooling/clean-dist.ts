// Otherwise the output of a removed source would be published.
import { rmSync } from 'node:fs'

rmSync('dist', { recursive: true, force: true })
