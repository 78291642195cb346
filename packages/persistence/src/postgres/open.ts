import type { CommitQueueLimits } from '../commit-queue.ts'
import type { Storage } from '../index.ts'
import { migratePostgres } from './migrate.ts'
import type { PostgresOptions } from './options.ts'
import { statements } from './statements.ts'
import { joinPostgres } from './storage.ts'

export async function openPostgres(options: PostgresOptions, limits: CommitQueueLimits): Promise<Storage> {
  await migratePostgres(options)
  const link = () => ({ options, statements, limits })
  return { ...joinPostgres(link()), link }
}
