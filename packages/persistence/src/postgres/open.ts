import type { CommitQueueLimits } from '../commit-queue.ts'
import type { CommitObserver, Storage } from '../storage.ts'
import { migratePostgres } from './migrate.ts'
import type { PostgresOptions } from './options.ts'
import { statements } from './statements.ts'
import { joinPostgres } from './storage.ts'

export async function openPostgres(
  options: PostgresOptions,
  limits: CommitQueueLimits,
  onCommit?: CommitObserver['onCommit'],
): Promise<Storage> {
  await migratePostgres(options)
  const link = () => ({ options, statements, limits })
  return { ...joinPostgres(link(), onCommit), link }
}
