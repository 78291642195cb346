import { plantRepositoryContract } from '@plant-store/domain/testing'
import { openStorage, openReader, inspectStore, backUpStore } from '@plant-store/persistence'
import { rmSync } from 'node:fs'
for (const { name, run } of plantRepositoryContract) {
  for (const f of ['', '-wal', '-shm']) rmSync('/tmp/smoke.db' + f, { force: true })
  await using storage = await openStorage({ url: 'file:/tmp/smoke.db' })
  try { await run(storage.plants) } catch (e) { console.log('FAILED', name, e) }
}
console.log(await inspectStore('file:/tmp/smoke.db'))
