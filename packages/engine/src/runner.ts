import type { Change, ChangeStatement, ReadStatement } from './statements/statement.ts'

/** Runs statements. Rejects with `store-busy` or `store-unavailable`. */
export interface Runner {
  read<Values extends object, Row>(
    statement: ReadStatement<Values, Row>,
    values: Values,
  ): Promise<readonly Row[]>
  /** Returns a change: the statement with these values. */
  bind<Values extends object>(statement: ChangeStatement<Values>, values: Values): Change
  /** Resolves to the affected rows once the change is durable. */
  submit<Values extends object>(
    statement: ChangeStatement<Values>,
    values: Values,
  ): Promise<number>
  /**
   * Like `submit`, for several changes, in order. A long list takes several transactions
   * (`group-queue.ts`). If one of them fails, others may be stored.
   */
  submitAll(changes: readonly Change[]): Promise<readonly number[]>
}
