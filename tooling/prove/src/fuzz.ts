import assert from 'node:assert/strict'
import {
  type Answer,
  type Client,
  type DescribedOperation,
  type Description,
  readDescription,
  readExactly,
} from '@plant-store/http/testing'
import fc from 'fast-check'
import { type DrawnRequest, drawRequest } from './fuzz-requests.ts'
import { checkProperty } from './model.ts'
import { type Circumstances, type Finding, figure } from './part.ts'
import { withProgram } from './program.ts'

const methods = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'QUERY',
  'MKCOL',
]
const malformed = [
  '',
  'Bearer',
  'Bearer ',
  'Bearer null',
  'bearer,',
  'Bearer a b',
  'Token x',
  'Basic cGxhbnQ6c3RvcmU=',
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
    const { requests, failures } = await fuzz(
      client,
      description,
      Math.ceil(2_000 * scale),
      seed,
    )
    return {
      tried: `${figure(requests)} requests made from the description`,
      times: requests,
      failures,
    }
  })
}

async function fuzz(client: Client, json: string, runs: number, seed: number) {
  const description = readDescription(json)
  const failures: string[] = []
  let requests = 0
  const ask: Client['ask'] = (...asked) => {
    requests++
    return client.ask(...asked)
  }
  const judge = async <Values>(
    what: string,
    property: fc.IAsyncProperty<Values>,
    runsOfIt = runs,
  ) => {
    const failure = await checkProperty(property, { seed, runs: runsOfIt })
    if (failure !== undefined) {
      failures.push(`${what}: ${failure}`)
    }
  }
  const few = Math.ceil(runs / 5)

  for (const operation of description.paths.flatMap(path => path.operations)) {
    const name = `${operation.method} ${operation.path}`
    const request = drawRequest(description, operation)
    await judge(name, answersProperty(operation, request, ask))
    const withoutCredentials = credentialsProperty(operation, request, ask)
    await judge(`${name} without good credentials`, withoutCredentials, few)
  }
  for (const path of description.paths) {
    await judge(`methods at ${path.template}`, methodsProperty(path, ask), few)
  }
  await judge('paths that are not declared', pathsProperty(description, ask))
  return { requests, failures }
}

type Ask = Client['ask']

/** Valid requests succeed, invalid ones fail, and changes can be read afterwards. */
function answersProperty(
  { method }: DescribedOperation,
  request: fc.Arbitrary<DrawnRequest>,
  ask: Ask,
) {
  return fc.asyncProperty(request, async drawn => {
    const { path, body, headers, isValid } = drawn
    const options = body === undefined ? { headers } : { body, headers }
    const answer = await ask(method, path, options)

    assertFits(drawn, answer)
    const hasChanged = isValid && answer.status < 300
    if (hasChanged && method === 'DELETE') {
      const after = await ask('GET', path)
      assert.equal(after.status, 404, 'what was removed is still there')
    }
    if (hasChanged && method === 'PUT') {
      const after = await ask('GET', path)
      const { id: _, ...shown } = readExactly(`${after.body}`) as Record<string, unknown>
      assert.deepEqual(shown, readExactly(`${answer.body}`), 'what was put is not there')
    }
  })
}

/** @throws AssertionError if the answer does not fit the validity of the request */
function assertFits({ isValid, headers }: DrawnRequest, { status, body }: Answer): void {
  assert.ok(status < 500, `a status of ${status}: ${body}`)
  if (!isValid) {
    assert.ok(status >= 400, `an invalid request was answered with ${status}`)
    return
  }
  const isTaken = `${body}`.includes('"error":40003')
  const isConditional = 'if-match' in headers || 'if-none-match' in headers
  const hasFailed = status === 412 && isConditional
  const isAllowed = status < 400 || status === 404 || isTaken || hasFailed
  assert.ok(isAllowed, `a valid request was answered with ${status} ${body}`)
}

/** Requests without good credentials get 401, unless the operation is open. */
function credentialsProperty(
  { method, isOpen }: DescribedOperation,
  request: fc.Arbitrary<DrawnRequest>,
  ask: Ask,
) {
  return fc.asyncProperty(request, credentials, async ({ path, body }, authorization) => {
    const { status } = await ask(method, path, {
      token: null,
      ...(body !== undefined && { body }),
      headers: authorization === undefined ? {} : { authorization },
    })

    const isRefused = status === 401
    assert.notEqual(isRefused, isOpen, `${authorization} was answered with ${status}`)
  })
}

/** Methods that a path does not have get 405. The client compares Allow itself. */
function methodsProperty(
  { template, operations }: Description['paths'][number],
  ask: Ask,
) {
  const declared = new Set(operations.map(({ method }) => method))
  if (declared.has('GET')) {
    declared.add('HEAD')
  }
  const others = methods.filter(method => !declared.has(method))
  const drawnMethod = fc.constantFrom(...others)
  return fc.asyncProperty(drawnMethod, fc.bigInt(0n, 100n), async (method, id) => {
    const { status } = await ask(method, template.replace('{id}', `${id}`))

    assert.equal(status, 405, `${method} was answered with ${status}`)
  })
}

/** Paths that are not declared get 404. */
function pathsProperty({ paths }: Description, ask: Ask) {
  const drawnMethod = fc.constantFrom(...methods)
  return fc.asyncProperty(drawnMethod, fc.webPath(), async (method, path) => {
    const target = `/${path.replace(/^\/+/, '')}`
    const isPage = /^\/(docs\/?)?$/.test(target)
    const isDeclared = paths.some(({ pattern }) => pattern.test(decodeURI(target)))
    if (isPage || isDeclared) {
      return
    }
    const { status } = await ask(method, target)

    assert.equal(status, 404, `${method} ${target} was answered with ${status}`)
  })
}
