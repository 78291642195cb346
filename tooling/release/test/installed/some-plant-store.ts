import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const main = join(import.meta.dirname, 'node_modules/plant-store/dist/main.js')

/** A plant store for the client to talk to; stands for one that runs elsewhere. */
export async function startPlantStore(): Promise<{
  baseUrl: string
  token: string
  close(): Promise<void>
}> {
  const token = 'plantstore_for-the-examples'
  const folder = await mkdtempDisposable(join(tmpdir(), 'plant-store-'))
  // The environment of the test is not passed on.
  const env = { ACCESS_TOKENS: token, PORT: '0' }
  const program = spawn(process.execPath, [main, 'serve'], {
    cwd: folder.path,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(createInterface(program.stdout), 'line')
  const { url } = JSON.parse(line) as { url: string }
  const close = async () => {
    program.kill()
    await once(program, 'exit')
    await folder.remove()
  }
  return { baseUrl: url, token, close }
}
