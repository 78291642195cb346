// What a removed source left behind would be packed and published.
import { rmSync } from 'node:fs'

rmSync('dist', { recursive: true, force: true })
