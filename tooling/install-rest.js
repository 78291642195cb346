// `pnpm --filter … test` on a fresh clone installs for that package only, and pnpm takes that for enough from then on.
// So what is missing is installed as well. Plain JavaScript: whatever Node there is runs it.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'

const folders = ['apps', 'packages', 'tooling'].flatMap(parent =>
  readdirSync(parent).map(name => `${parent}/${name}`),
)
const isMissing = folder => existsSync(`${folder}/package.json`) && !existsSync(`${folder}/node_modules`)
const isForDevelopment = existsSync('node_modules/turbo')
if (isForDevelopment && !process.env.INSTALLING_REST && folders.some(isMissing)) {
  const env = { ...process.env, INSTALLING_REST: '1' }
  process.exitCode = spawnSync('pnpm install', { shell: true, stdio: 'inherit', env }).status ?? 1
}
