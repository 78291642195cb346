import assert from 'node:assert/strict'
import {
  type Answer,
  type Client,
  type DescribedOperation,
  readDescription,
  readExactly,
} from '@plant-store/http/testing'
import fc from 'fast-check'
import { checkProperty } from '../model.ts'
import { type Circumstances, type Finding, figure } from '../part.ts'
import { withProgram } from '../program.ts'
import { type DrawnRequest, drawRequest } from './requests.ts'

const methods = 'GET HEAD POST PUT DELETE PATCH OPTIONS TRACE PROPFIND QUERY MKCOL'.split(
  ' ',
)
const malformed = [
  '',
  'Bearer',
  'Bearer ',
  'bearer,',
  'Bearer a b',
  'Token x',
  'Basic A==',
]
const credentials = fc.oneof(
  fc.constant(undefined),
  fc.constantFrom(...malformed),
  fc.stringMatching(/^[\w.~+/-]{1,40}=*$/).map(token => `Bearer ${token}`),
)

/**
 * Sends valid and invalid requests generated from the description, and compares the
 * answers with it. The client checks that the status, media type, header fields and body
 * of each answer are declared.
 */
export function runFuzz({ seed, scale, programs }: Circumstances): Promise<Finding> {
  return withProgram({ command: programs.server }, async ({ client, description }) => {
    const runs = Math.ceil(2_000 * scale)
    const failures: string[] = []
    let times = 0
    const ask: Ask = (...asked) => {
      times++
      return client.ask(...asked)
    }
    for (const { title, property, share } of propertiesOf(description, ask)) {
      const tries = { seed, runs: Math.ceil(runs * share) }
      const failure = await checkProperty(property as fc.IAsyncProperty<unknown>, tries)
      if (failure !== undefined) {
        failures.push(`${title}: ${failure}`)
      }
    }
    return { tried: `${figure(times)} requests from the description`, times, failures }
  })
}

type Ask = Client['ask']

/** Returns what must hold of each operation, of each path and of all others. */
function propertiesOf(json: string, ask: Ask) {
  const description = readDescription(json)
  const few = 1 / 5
  const id = fc.bigInt(0n, 100n)
  const ofOperations = description.paths
    .flatMap(({ operations }) => operations)
    .flatMap(operation => {
      const title = `${operation.method} ${operation.path}`
      const request = drawRequest(description, operation)
      const answers = fc.asyncProperty(request, drawn =>
        answersFit(operation, drawn, ask),
      )
      const refusal = fc.asyncProperty(request, credentials, (drawn, authorization) =>
        needsCredentials(operation, drawn, authorization, ask),
      )
      return [
        { title, property: answers, share: 1 },
        { title: `${title} without good credentials`, property: refusal, share: few },
      ]
    })
  const ofPaths = description.paths.map(({ template, operations }) => {
    const declared = operations.map(({ method }) => method)
    const others = methods.filter(
      method => !declared.includes(method === 'HEAD' ? 'GET' : method),
    )
    // The client compares Allow itself.
    const property = fc.asyncProperty(fc.constantFrom(...others), id, (method, id) =>
      gets(405, method, template.replace('{id}', `${id}`), ask),
    )
    return { title: `methods at ${template}`, property, share: few }
  })
  const isDeclared = (target: string) =>
    /^\/(docs\/?)?$/.test(target) ||
    description.paths.some(({ pattern }) => pattern.test(decodeURI(target)))
  const targets = fc
    .webPath()
    .map(path => `/${path.replace(/^\/+/, '')}`)
    .filter(target => !isDeclared(target))
  const undeclared = fc.asyncProperty(
    fc.constantFrom(...methods),
    targets,
    (method, target) => gets(404, method, target, ask),
  )
  const title = 'paths that are not declared'
  return [...ofOperations, ...ofPaths, { title, property: undeclared, share: 1 }]
}

async function gets(expected: number, method: string, target: string, ask: Ask) {
  const { status } = await ask(method, target)

  assert.equal(status, expected, `${method} ${target} was answered with ${status}`)
}

/** Valid requests succeed, invalid ones fail, and changes can be read afterwards. */
async function answersFit({ method }: DescribedOperation, drawn: DrawnRequest, ask: Ask) {
  const { path, body, headers, isValid } = drawn
  const answer = await ask(method, path, { headers, ...(body !== undefined && { body }) })

  assertFits(drawn, answer)
  const hasChanged = isValid && answer.status < 300
  if (!hasChanged || !['DELETE', 'PUT'].includes(method)) {
    return
  }
  const after = await ask('GET', path)
  const isGone = after.status === 404
  assert.equal(
    isGone,
    method === 'DELETE',
    `after a ${method} it is answered ${after.status}`,
  )
  const { id: _, ...shown } = isGone ? {} : read(after)
  assert.deepEqual(shown, isGone ? {} : read(answer), 'what was put is not there')
}

const read = ({ body }: Answer) => readExactly(`${body}`) as Record<string, unknown>

/** @throws AssertionError if the answer does not fit the validity of the request */
function assertFits({ isValid, headers }: DrawnRequest, { status, body }: Answer): void {
  const isTaken = `${body}`.includes('"error":40003')
  const isConditional = 'if-match' in headers || 'if-none-match' in headers
  const hasFailed = status === 412 && isConditional
  const isAllowed = status < 400 || status === 404 || isTaken || hasFailed
  const fits = isValid ? isAllowed : status >= 400 && status < 500
  const kind = isValid ? 'a valid' : 'an invalid'
  assert.ok(fits, `${kind} request was answered with ${status} ${body}`)
}

/** Requests without good credentials get 401, unless the operation is open. */
async function needsCredentials(
  { method, isOpen }: DescribedOperation,
  { path, body }: DrawnRequest,
  authorization: string | undefined,
  ask: Ask,
) {
  const { status } = await ask(method, path, {
    token: null,
    ...(body !== undefined && { body }),
    headers: authorization === undefined ? {} : { authorization },
  })

  const isRefused = status === 401
  assert.notEqual(isRefused, isOpen, `${authorization} was answered with ${status}`)
}
