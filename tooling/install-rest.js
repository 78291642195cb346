// `pnpm --filter … test` on a fresh clone installs only that package, and pnpm then
// considers the workspace installed. So this installs the rest. Plain JavaScript, for any
// version of Node.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'

const folders = ['apps', 'packages', 'tooling'].flatMap(parent =>
  readdirSync(parent).map(name => `${parent}/${name}`),
)
const isMissing = folder =>
  existsSync(`${folder}/package.json`) && !existsSync(`${folder}/node_modules`)
const isForDevelopment = existsSync('node_modules/turbo')
if (isForDevelopment && !process.env.INSTALLING_REST && folders.some(isMissing)) {
  const env = { ...process.env, INSTALLING_REST: '1' }
  process.exitCode =
    spawnSync('pnpm install', { shell: true, stdio: 'inherit', env }).status ?? 1
}
