import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { joinStorage, type StorageLink } from '@plant-store/persistence'
import type { Config } from './config.ts'
import { openLog } from './log.ts'
import { serve } from './serve.ts'

export interface HttpThreadData {
  readonly config: Config
  readonly link: StorageLink
}

const owner = parentPort
if (owner === null) throw new Error('http-thread.js runs as a worker thread')

const { config, link } = workerData as HttpThreadData
await using storage = await joinStorage(link)
await using _server = await serve(config, storage, openLog(config.logLevel))
owner.postMessage('listening')
await once(owner, 'message')
