import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isInstalled } from '@plant-store/harness'
import { bun } from '@plant-store/harness/npm-program'
import { describeMachine, introductionOf } from './page.ts'
import { parts } from './parts.ts'
import { drawCreates, themes } from './picture.ts'
import { queryOne, run } from './plants.ts'

const wanted = process.argv.slice(2)
const isWhole = wanted.length === 0
const unknown = wanted.find(name => !(name in parts))
if (unknown !== undefined) {
  throw new Error(`there is no part ${unknown}, but ${Object.keys(parts).join(', ')}`)
}
const missing = ['wrk', 'sqlite3', 'strace'].filter(tool => !isInstalled(tool))
if (missing.length > 0) {
  throw new Error(`missing: apt-get install ${missing.join(' ')}`)
}

const effort = { rounds: 5, warmUpSeconds: 15, plantsInFile: 1_000_000 }
const sections = [introductionOf(effort).trimEnd()]
for (const [name, part] of Object.entries(parts)) {
  if (isWhole || wanted.includes(name)) {
    sections.push(`## ${part.title}`, await part.run(effort))
  }
}
const sqlite = queryOne<string>('select sqlite_version()')
const { stdout: bunVersion } = await run(await bun.fetch(), ['--version'])
const machine = describeMachine(sqlite, bunVersion.trim())
const page = `${[...sections, '## Machine', machine].join('\n\n')}\n`

console.log(page)
if (isWhole) {
  const docs = join(import.meta.dirname, '../../../docs')
  writeFileSync(join(docs, 'benchmark.md'), page)
  for (const [name, theme] of Object.entries(themes)) {
    writeFileSync(join(docs, `benchmark-${name}.svg`), drawCreates(page, theme))
  }
}
