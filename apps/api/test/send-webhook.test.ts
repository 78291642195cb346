import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import dns from 'node:dns'
import { once } from 'node:events'
import { type ClientRequest, createServer, type RequestListener } from 'node:http'
import { connect, createServer as createTcpServer, isIP, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { listenLocally } from '@plant-store/harness'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { sendWebhook } from '../src/webhooks/send-webhook.ts'

const body = '{"id":1,"name":"🌱"}'

async function listen(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${await listenLocally(server)}/hook?a=b`
}

/** A listener below HTTP. */
async function listenTcp(onSocket: (socket: Socket) => void): Promise<string> {
  const server = createTcpServer(socket => {
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    onSocket(socket)
  })
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${await listenLocally(server)}/`
}

function send(url: string, more: object = {}, timeoutMs = 3_600_000) {
  const { signal } = new AbortController()
  const headers = { 'webhook-id': 'added_1' }
  return sendWebhook(
    { url, allowsPrivate: true, headers, body, signal, ...more },
    timeoutMs,
  )
}

/** Answers each question for a name with the next addresses, or fails without any. */
function answerLookups(...answers: readonly (readonly string[])[]) {
  const left = [...answers]
  const answer = (_name: string, _options: object, callback: LookupCallback) => {
    const addresses = left.shift()
    const error = addresses === undefined ? new Error('was asked') : null
    const found = addresses?.map(address => ({ address, family: isIP(address) }))
    setImmediate(callback, error, found ?? [])
  }
  // Overloads of the real function keep TypeScript from seeing that this one fits.
  vi.spyOn(dns, 'lookup').mockImplementation(answer as never)
}

type LookupCallback = (
  error: Error | null,
  addresses: readonly dns.LookupAddress[],
) => void

test('a delivery posts the body as it is, with its header fields', async () => {
  const got = Promise.withResolvers<unknown>()
  const url = await listen(async (request, response) => {
    const { method, url, headers } = request
    const [chunk] = await once(request.setEncoding('utf8'), 'data')
    got.resolve({ method, url, headers, chunk })
    response.end()
  })

  expect(await send(url)).toMatchObject({ status: 200 })
  expect(await got.promise).toMatchObject({
    method: 'POST',
    url: '/hook?a=b',
    chunk: body,
    headers: {
      accept: '*/*',
      'content-type': 'application/json',
      'content-length': `${Buffer.byteLength(body)}`,
      'webhook-id': 'added_1',
      'user-agent': expect.stringMatching(/^plant-store\/\d/),
    },
  })
})

test('a delivery tells the status and the pause, and follows no redirect', async () => {
  let requests = 0
  const url = await listen((_, response) => {
    requests++
    response.writeHead(301, { location: '/elsewhere', 'retry-after': '120' }).end()
  })

  expect(await send(url)).toMatchObject({ status: 301, retryAfterMs: 120_000 })
  expect(requests).toBe(1)
})

test('a delivery fails in time when the head comes a byte a moment', async () => {
  const url = await listenTcp(socket => {
    socket.write('HTTP/1.1 200 OK\r\na: ')
    const timer = setInterval(() => socket.write('b'), 20)
    socket.on('close', () => clearInterval(timer))
  })

  await expect(send(url, {}, 100)).rejects.toThrow('no answer within 100 ms')
})

describe('a delivery costs little when the listener', () => {
  /** Sends texts as fast as it can. */
  const floods = (head: string, text: string) => (socket: Socket) => {
    const part = text.repeat(1_000)
    const write = () => {
      while (!socket.destroyed && socket.write(part)) {
        // The buffer of the socket has room.
      }
    }
    socket.on('drain', write)
    socket.once('data', () => socket.write(head, write))
  }
  /** Sends texts one by one, each in a packet of its own. */
  const trickles = (head: string, text: string) => (socket: Socket) => {
    socket.setNoDelay(true)
    const write = () => {
      if (!socket.destroyed) {
        socket.write(text)
        setTimeout(write, 1)
      }
    }
    socket.once('data', () => socket.write(head, write))
  }

  test.each([
    [
      'sends interim answers as fast as it can',
      floods('', 'HTTP/1.1 102 Processing\r\n\r\n'),
      'the answer is longer than 65536 bytes',
    ],
    [
      'sends its head byte by byte',
      trickles('HTTP/1.1 200 OK\r\na: ', 'b'),
      'the answer arrives in too many pieces',
    ],
  ])('%s: it fails', async (_, onSocket, reason) => {
    const sending = send(await listenTcp(onSocket))

    await expect(sending).rejects.toThrow(reason)
  })

  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n'

  test.each([
    ['sends megabytes', floods(head, 'x')],
    ['sends a body byte by byte', trickles(head, 'x')],
    ['never ends its body', trickles(head, '')],
  ])('%s: it has received the plant', async (_, onSocket) => {
    const answer = await send(await listenTcp(onSocket))

    expect(answer).toEqual({ status: 200, retryAfterMs: undefined, isExcessive: true })
  })

  test('sends cookies and a body at once: the connection is used again', async () => {
    const ports = new Set<number | undefined>()
    const url = await listen((request, response) => {
      ports.add(request.socket.remotePort)
      response.setHeader('set-cookie', 'x'.repeat(20_000)).end('x'.repeat(20_000))
    })

    const answers = [await send(url), await send(url)]

    expect(answers.map(({ isExcessive }) => isExcessive)).toEqual([false, false])
    expect(ports.size).toBe(1)
  })
})

test.each<[string, (socket: Socket) => void, RegExp]>([
  ['resets', socket => socket.resetAndDestroy(), /ECONNRESET/],
  [
    'changes the protocol',
    socket => socket.write('HTTP/1.1 101 A\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    /closed the connection|socket hang up/,
  ],
  [
    'disconnects within the head',
    socket => socket.end('HTTP/1.1 200 O'),
    /socket hang up|Parse Error/,
  ],
])(
  'a delivery fails once when the listener %s on a new connection',
  async (_, answer, reason) => {
    const onSocket = vi.fn(answer)

    await expect(send(await listenTcp(onSocket))).rejects.toThrow(reason)
    expect(onSocket).toHaveBeenCalledOnce()
  },
)

test.each(['ECONNRESET', 'EPIPE'])(
  'a delivery that meets %s on a connection that waited is repeated',
  async code => {
    const url = await listen((_, response) => response.end())
    await send(url)
    const reused: boolean[] = []
    const onStart = (message: unknown) => {
      const { request } = message as { request: ClientRequest }
      reused.push(request.reusedSocket)
      if (request.reusedSocket) {
        request.destroy(Object.assign(new Error(code), { code }))
      }
    }
    subscribe('http.client.request.start', onStart)
    onTestFinished(() => void unsubscribe('http.client.request.start', onStart))

    expect(await send(url)).toMatchObject({ status: 200 })
    expect(reused).toEqual([true, false])
  },
)

test('a delivery ends when it is aborted', async () => {
  const abort = new AbortController()
  const url = await listenTcp(() => abort.abort())
  await expect(send(url, { signal: abort.signal })).rejects.toThrow('aborted')
})

test('a delivery says of each address of a name why it fails', async () => {
  // No system connects to addresses of many, so each attempt fails at once.
  answerLookups(['255.255.255.255', '224.0.0.1'])

  await expect(send('http://shop.example:1/')).rejects.toThrow(
    /^connect \w+ 255\.255\.255\.255:1\b.*; connect \w+ 224\.0\.0\.1:1\b/,
  )
})

test('an address that is slow is not given up for one that refuses', async () => {
  const port = await listenUnaccepting()
  for (const socket of [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]) {
    // The thread ends first, and resets them.
    socket.on('error', () => {})
    await once(socket, 'connect')
  }
  answerLookups(['127.0.0.1', '127.0.0.2'])

  const sending = send(`http://shop.example:${port}/`, {}, 500)

  await expect(sending).rejects.toThrow('no answer')
})

/** Listens in a thread that accepts nothing: the system lets two connections wait. */
async function listenUnaccepting(): Promise<number> {
  const code = `
    const { parentPort, workerData } = require('node:worker_threads')
    const server = require('node:net').createServer()
    server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })`
  const worker = new Worker(code, { eval: true })
  onTestFinished(async () => void (await worker.terminate()))
  const [port] = await once(worker, 'message')
  return port
}

describe('without --allow-private', () => {
  const guarded = (url: string) => send(url, { allowsPrivate: false })
  const refusal = 'is a private address: the webhook needs --allow-private'

  test.each(['http://[::1]/', 'http://localhost/', 'https://localhost/'])(
    'refuses %s',
    async url => {
      await expect(guarded(url)).rejects.toThrow(refusal)
    },
  )

  test('judges every address of a name at every connection', async () => {
    answerLookups(['93.184.216.34', '127.0.0.1'], ['::1'])

    for (const address of ['127.0.0.1', '::1']) {
      await expect(guarded('http://shop.example:1/'), address).rejects.toThrow(
        `${address} ${refusal}`,
      )
    }
  })

  test('uses no connection of a webhook that may', async () => {
    const url = await listen((_, response) => response.end())
    const byName = url.replace('127.0.0.1', 'localhost')
    expect(await send(byName)).toMatchObject({ status: 200 })
    await expect(guarded(byName)).rejects.toThrow(refusal)
  })

  test('judges nothing else: a name is looked up', async () => {
    answerLookups()

    await expect(guarded('http://shop.example/')).rejects.toThrow('was asked')
  })
})
