import { type Client, readDescription, readExactly } from '@plant-store/contract'
import fc from 'fast-check'
import { drawRequest } from './fuzz-requests.ts'
import { checkProperty } from './model.ts'
import { type Circumstances, type Finding, figure } from './part.ts'
import { withProgram } from './program.ts'

const methods = 'GET HEAD POST PUT DELETE PATCH OPTIONS TRACE PROPFIND QUERY MKCOL'.split(
  ' ',
)
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
  const operations = description.paths.flatMap(path => path.operations)
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

  for (const operation of operations) {
    const { method, path, isOpen } = operation
    const request = drawRequest(description, operation)
    await judge(
      `${method} ${path}`,
      fc.asyncProperty(request, async ({ path, body, headers, isValid }) => {
        const answer = await ask(method, path, {
          ...(body !== undefined && { body }),
          headers,
        })
        const { status } = answer
        if (status >= 500) {
          throw new Error(`a status of ${status}: ${answer.body}`)
        }
        const isTaken = `${answer.body}`.includes('"error":40003')
        const isConditional =
          headers['if-match'] !== undefined || headers['if-none-match'] !== undefined
        const hasFailed = status === 412 && isConditional
        if (isValid && status >= 400 && status !== 404 && !isTaken && !hasFailed) {
          throw new Error(`a valid request was answered with ${status} ${answer.body}`)
        }
        if (!isValid && status < 400) {
          throw new Error(`an invalid request was answered with ${status}`)
        }
        if (isValid && method === 'DELETE' && status === 204) {
          const after = await ask('GET', path)
          if (after.status !== 404) {
            throw new Error(`what was removed is answered with ${after.status}`)
          }
        }
        if (isValid && method === 'PUT' && !hasFailed) {
          const after = await ask('GET', path)
          const { id: _, ...shown } = readExactly(`${after.body}`) as Record<
            string,
            unknown
          >
          if (JSON.stringify(shown) !== JSON.stringify(JSON.parse(`${answer.body}`))) {
            throw new Error(`what was put is answered with ${after.body}`)
          }
        }
      }),
    )
    await judge(
      `${method} ${path} without good credentials`,
      fc.asyncProperty(request, credentials, async ({ path, body }, authorization) => {
        const { status } = await ask(method, path, {
          token: null,
          ...(body !== undefined && { body }),
          headers: authorization === undefined ? {} : { authorization },
        })
        const isRefused = status === 401
        if (isRefused === isOpen) {
          throw new Error(`${authorization} was answered with ${status}`)
        }
      }),
      few,
    )
  }
  for (const { template: path, operations } of description.paths) {
    const declared = operations.flatMap(({ method }) =>
      method === 'GET' ? ['GET', 'HEAD'] : method,
    )
    const others = methods.filter(method => !declared.includes(method))
    await judge(
      `methods at ${path}`,
      fc.asyncProperty(
        fc.constantFrom(...others),
        fc.bigInt(0n, 100n),
        async (method, id) => {
          const { status } = await ask(method, path.replace('{id}', `${id}`))
          // Allow itself is compared with the description by the client.
          if (status !== 405) {
            throw new Error(`${method} was answered with ${status}`)
          }
        },
      ),
      few,
    )
  }
  await judge(
    'paths that are not declared',
    fc.asyncProperty(fc.constantFrom(...methods), fc.webPath(), async (method, path) => {
      const target = `/${path.replace(/^\/+/, '')}`
      const isPage = /^\/(docs\/?)?$/.test(target)
      if (
        isPage ||
        description.paths.some(({ pattern }) => pattern.test(decodeURI(target)))
      ) {
        return
      }
      const { status } = await ask(method, target)
      if (status !== 404) {
        throw new Error(`${method} ${target} was answered with ${status}`)
      }
    }),
  )
  return { requests, failures }
}
