import assert from 'node:assert/strict'
import {
  type Answer,
  type Client,
  type DescribedOperation,
  jsonOf,
  readDescription,
} from '@plant-store/http/testing'
import fc from 'fast-check'
import { checkProperty } from '../model.ts'
import { type Circumstances, type Finding, figure } from '../part.ts'
import { withProgram } from '../program.ts'
import { type DrawnRequest, drawRequest } from './requests.ts'

/**
 * Sends valid and invalid requests generated from the description to each operation, and
 * compares the answers with it. The client checks that the status, media type, header
 * fields and body of each answer are declared.
 */
export function runFuzz({ seed, scale, programs }: Circumstances): Promise<Finding> {
  return withProgram({ command: programs.server }, async ({ client, description }) => {
    const described = readDescription(description)
    const runs = Math.ceil(2_000 * scale)
    const failures: string[] = []
    const operations = described.paths.flatMap(path => path.operations)
    for (const operation of operations) {
      const request = drawRequest(described, operation)
      const property = fc.asyncProperty(request, drawn =>
        answersFit(operation, drawn, client),
      )
      const failure = await checkProperty(property, seed, runs)
      if (failure !== undefined) {
        failures.push(`${operation.method} ${operation.path}: ${failure}`)
      }
    }
    const times = operations.length * runs
    return { tried: `${figure(times)} requests from the description`, times, failures }
  })
}

/** Valid requests succeed, invalid ones fail, and changes can be read afterwards. */
async function answersFit(
  { method }: DescribedOperation,
  drawn: DrawnRequest,
  client: Client,
) {
  const { path, isValid } = drawn
  const answer = await client.ask(method, path, drawn)

  assertFits(drawn, answer)
  const hasChanged = isValid && answer.status < 300
  if (!hasChanged || !['DELETE', 'PUT'].includes(method)) {
    return
  }
  const after = await client.ask('GET', path)
  assert.equal(after.status, method === 'DELETE' ? 404 : 200, `after a ${method}`)
  if (method === 'DELETE') {
    return
  }
  const { id: _, ...shown } = jsonOf(after) as Record<string, unknown>
  assert.deepEqual(shown, jsonOf(answer), 'what was put is not there')
}

/** @throws AssertionError if the answer does not fit the validity of the request */
function assertFits({ isValid, headers }: DrawnRequest, { status, body }: Answer) {
  const isTaken = `${body}`.includes('"error":40003')
  const isConditional = 'if-match' in headers || 'if-none-match' in headers
  const hasFailed = status === 412 && isConditional
  const isAllowed = status < 400 || status === 404 || isTaken || hasFailed
  const isRefused = status >= 400 && status < 500

  assert.ok(
    isValid ? isAllowed : isRefused,
    `a request whose validity is ${isValid} was answered with ${status} ${body}`,
  )
}
