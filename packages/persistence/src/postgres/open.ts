import type { CommitQueueLimits } from '../commit-queue.ts'
import type { CommitObserver, StateObserver, Storage } from '../storage.ts'
import { migratePostgres } from './migrate.ts'
import type { PostgresOptions } from './options.ts'
import { statements } from './statements.ts'
import { joinPostgres } from './storage.ts'

export async function openPostgres(
  options: PostgresOptions,
  limits: CommitQueueLimits,
  observer: CommitObserver & StateObserver,
): Promise<Storage> {
  await migratePostgres(options)
  const link = () => ({ options, statements, limits })
  return { ...joinPostgres(link(), observer), link }
}
