import type { CommitQueueLimits } from '../commit-queue.ts'
import type { Storage } from '../index.ts'
import { migratePostgres } from './migrate.ts'
import { statements } from './statements.ts'
import { joinPostgres, type PostgresOptions } from './storage.ts'

export async function openPostgres(options: PostgresOptions, limits: CommitQueueLimits): Promise<Storage> {
  await migratePostgres(options)
  const link = () => ({ options, statements, limits })
  return { ...joinPostgres(link()), link }
}
