import { readdirSync } from 'node:fs'
import type { Server } from '@plant-store/harness'
import { type TestedProgram, token } from '../program.ts'

/** Attacks the program. Resolves to the outcome in words, and rejects if it is wrong. */
export type Attack = (target: Target) => Promise<string>

export interface Target {
  readonly program: TestedProgram
  readonly scale: number
  nextId(): bigint
  /** The well-behaved client's answers in this attack so far. */
  healthyAnswers(): number
  /** Reports that this machine allows less than was to be tried. */
  fallShort(what: string): void
}

/** The header fields of a request for the plants. */
export const authorized = `host: h\r\nauthorization: Bearer ${token}\r\n`
export const healthRequest = 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'

export const openFiles = ({ pid }: Server): number =>
  readdirSync(`/proc/${pid}/fd`).length
