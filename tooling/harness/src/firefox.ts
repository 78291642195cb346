import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { launch } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './until.ts'

/** Where Debian keeps Firefox. */
const executablePath = '/usr/bin/firefox-esr'

export const hasFirefox = existsSync(executablePath)

/**
 * Starts Firefox, driven by WebDriver BiDi. Playwright's own client needs a newer Firefox
 * than Debian's.
 */
export async function startFirefox() {
  const profile = temporaryFolder()
  const program = launch(
    [
      executablePath,
      '--headless',
      '--profile',
      profile.path,
      '--remote-debugging-port=0',
    ],
    { environment: { HOME: profile.path } },
  )
  const findAddress = () => /ws:\/\/\S+/.exec(program.errors())?.[0]
  await until('Firefox to listen', () => {
    program.assertRunning()
    return findAddress() !== undefined
  })
  const socket = new WebSocket(`${findAddress()}/session`)
  await once(socket, 'open')
  const send = createSend(socket)
  await send('session.new', { capabilities: {} })
  const { contexts } = await send('browsingContext.getTree', {})
  const { context } = contexts[0]
  return {
    open: (url: string) =>
      send('browsingContext.navigate', { context, url, wait: 'complete' }),
    back: () => send('browsingContext.traverseHistory', { context, delta: -1 }),
    /** Runs an expression in the page, as if the user had just pressed a key. */
    async evaluate(expression: string): Promise<unknown> {
      const { result, exceptionDetails } = await send('script.evaluate', {
        expression,
        target: { context },
        awaitPromise: true,
        userActivation: true,
      })
      if (exceptionDetails !== undefined) {
        throw new Error(`${expression}: ${exceptionDetails.text}`)
      }
      return result.value
    },
    async [Symbol.asyncDispose]() {
      socket.close()
      await program.end()
      profile[Symbol.dispose]()
    },
  }
}

/** The results of the commands that are used here. */
interface Result {
  readonly contexts: readonly [{ readonly context: string }]
  readonly result: { readonly value: unknown }
  readonly exceptionDetails?: { readonly text: string }
}

/**
 * Returns a function that sends a command of the protocol, and resolves to its result.
 * One command is sent at a time, and nothing else is answered.
 */
function createSend(socket: WebSocket) {
  return async (method: string, params: object): Promise<Result> => {
    socket.send(JSON.stringify({ id: 1, method, params }))
    const [{ data }] = await once(socket, 'message')
    const { result, message } = JSON.parse(data)
    assert(message === undefined, `${method}: ${message}`)
    return result
  }
}
