import type { Dialect } from '../schema/dialect.ts'
import { createPlantRepository, type PageReader, plantChanges, plantReads } from './plants.ts'
import { type Call, compile, type Statement, type StatementRunner } from './statements.ts'
import { createTokenRepository, tokenChanges, tokenReads } from './tokens.ts'
import { createWebhookRepositories, webhookChanges, webhookReads } from './webhooks.ts'

const reads = (dialect: Dialect) => ({ ...plantReads(dialect), ...tokenReads, ...webhookReads(dialect) })
const changes = (dialect: Dialect) => ({
  ...plantChanges(dialect),
  ...tokenChanges,
  ...webhookChanges(dialect),
})

type Reads = ReturnType<typeof reads>
type Changes = ReturnType<typeof changes>

export interface Statements {
  readonly read: Readonly<Record<keyof Reads, Statement>>
  readonly change: Readonly<Record<keyof Changes, Statement>>
}

/** Returns the SQL of every statement, by name. */
export function createStatements(dialect: Dialect): Statements {
  return { read: compile(reads(dialect), dialect), change: compile(changes(dialect), dialect) }
}

/** A call of a statement that changes rows. */
export type Change = Call<keyof Changes>
export type Read = Call<keyof Reads>

export interface Runner extends StatementRunner<Reads, Changes>, PageReader {}

/** Returns the ports on the tables of any database. */
export function createRepositories(runner: Runner) {
  return {
    plants: createPlantRepository(runner),
    tokens: createTokenRepository(runner),
    ...createWebhookRepositories(runner),
  }
}
