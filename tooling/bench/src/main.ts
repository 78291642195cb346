import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isInstalled } from '@plant-store/harness'
import { bun } from '@plant-store/harness/npm-program'
import { describeMachine, effort, introduction } from './page.ts'
import { parts } from './parts.ts'
import { drawCreates, themes } from './picture.ts'

const wanted = process.argv.slice(2)
const isWhole = wanted.length === 0
const unknown = wanted.find(name => !(name in parts))
const names = Object.keys(parts).join(', ')
assert(unknown === undefined, `there is no part ${unknown}, but ${names}`)
const missing = ['wrk', 'sqlite3', 'strace'].filter(tool => !isInstalled(tool))
assert(missing.length === 0, `missing: apt-get install ${missing.join(' ')}`)
await bun.fetch()

const sections = [introduction]
for (const [name, part] of Object.entries(parts)) {
  if (isWhole || wanted.includes(name)) {
    sections.push(`## ${part.title}`, await part.run(effort))
  }
}
sections.push('## Machine', describeMachine())
const page = `${sections.join('\n\n')}\n`

console.log(page)
if (isWhole) {
  const docs = join(import.meta.dirname, '../../../docs')
  writeFileSync(join(docs, 'benchmark.md'), page)
  for (const [name, theme] of Object.entries(themes)) {
    writeFileSync(join(docs, `benchmark-${name}.svg`), drawCreates(page, theme))
  }
}
