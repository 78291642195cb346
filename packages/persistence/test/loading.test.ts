import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openArchive } from '@plant-store/persistence'
import { expect, test } from 'vitest'

/** Of these packages, those that a process has loaded once it has opened a store in this way. */
async function loadedBy(open: string, url: string): Promise<string[]> {
  const program = `
    import { registerHooks } from 'node:module'
    const urls = []
    registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) })
    const persistence = await import('@plant-store/persistence')
    await using opened = await persistence.${open}
    console.log(JSON.stringify(['better-sqlite3', 'kysely', 'pg'].filter(name =>
      urls.some(url => url.includes('/node_modules/' + name + '/')))))`
  const args = ['--input-type=module', '--eval', program, url]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname })
  return JSON.parse(stdout)
}

test('what opens a store loads what it needs: who only reads one is spared the hundreds of files of Kysely', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
  try {
    const url = `file:${folder}/store.db`
    await (await openArchive(url))[Symbol.asyncDispose]()
    expect(await loadedBy('openSnapshot(process.argv[1])', url)).toEqual(['better-sqlite3'])
    expect(await loadedBy('openArchive(process.argv[1])', url)).toEqual(['better-sqlite3', 'kysely'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
