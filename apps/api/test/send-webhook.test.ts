import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import dns from 'node:dns'
import { once } from 'node:events'
import { type ClientRequest, createServer, type RequestListener } from 'node:http'
import { connect, createServer as createTcpServer, isIP, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { listenLocally } from '@plant-store/harness'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { sendWebhook } from '../src/webhooks/send-webhook.ts'

const deliveryTimeoutMs = 500
const never = new AbortController().signal
const about = {
  headers: { 'webhook-id': 'added_1' },
  body: '{"id":1,"name":"🌱"}',
  signal: never,
}

async function listen(answer: RequestListener) {
  const server = createServer(answer)
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    server,
    url: `http://127.0.0.1:${await listenLocally(server)}/hook?a=b`,
  }
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

const send = (url: string, more: object = {}, timeoutMs = deliveryTimeoutMs) =>
  sendWebhook({ url, allowsPrivate: true, ...about, ...more }, timeoutMs)

/** Answers every question for the address of a name, until the test ends. */
function answerLookups(result: () => LookupResult) {
  onTestFinished(() => void vi.restoreAllMocks())
  const answer = (_name: string, _options: object, callback: LookupCallback) => {
    setImmediate(callback, ...result())
  }
  // Overloads of the real function keep TypeScript from seeing that this one fits.
  return vi.spyOn(dns, 'lookup').mockImplementation(answer as never)
}

type LookupResult = [error: Error] | [error: null, addresses: dns.LookupAddress[]]
type LookupCallback = (...result: LookupResult) => void

test('posts the body as it is, with its header fields', async () => {
  const got = Promise.withResolvers<unknown>()
  const { url } = await listen(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) {
      body += chunk
    }
    const { method, url, headers } = request
    got.resolve({ method, url, headers, body })
    response.end()
  })
  expect(await send(url)).toMatchObject({ status: 200 })
  expect(await got.promise).toMatchObject({
    method: 'POST',
    url: '/hook?a=b',
    body: about.body,
    headers: {
      accept: '*/*',
      'content-type': 'application/json',
      'content-length': `${Buffer.byteLength(about.body)}`,
      'webhook-id': 'added_1',
      'user-agent': expect.stringMatching(/^plant-store\/\d/),
    },
  })
})

test.each([200, 301, 500])(
  'resolves to the status %i, and follows no redirect',
  async status => {
    let requests = 0
    const { url } = await listen((_, response) => {
      requests++
      response.writeHead(status, { location: '/elsewhere' }).end()
    })
    expect(await send(url)).toMatchObject({ status })
    expect(requests).toBe(1)
  },
)

test('reads an answer of megabytes up to a bound', async () => {
  const cut = Promise.withResolvers<number>()
  const { url } = await listen((_, response) => {
    response.writeHead(200)
    let written = 0
    const write = () => {
      while (response.write(Buffer.alloc(65_536))) {
        written += 65_536
      }
    }
    response.on('drain', write)
    response.on('close', () => cut.resolve(written))
    write()
  })
  // It does not take the time-out.
  const answer = await send(url, {}, 3_600_000)
  expect(answer).toMatchObject({ status: 200, isExcessive: true })
  // The buffers of two sockets hold less than this.
  expect(await cut.promise).toBeLessThan(64 * 1024 * 1024)
})

test('fails in time when the listener sends one byte of its head a moment', async () => {
  const url = await listenTcp(socket =>
    trickle(socket, 'a: b\r\n', 'HTTP/1.1 200 OK\r\n'),
  )

  await expect(send(url, {}, 100)).rejects.toThrow('no answer within 100 ms')
})

describe('costs little when the listener', () => {
  const floods = (text: string) => (socket: Socket) => {
    const part = text.repeat(1_000)
    const write = () => {
      while (!socket.destroyed && socket.write(part)) {
        // The buffer of the socket has room.
      }
    }
    socket.on('drain', write)
    socket.once('data', write)
  }
  /** Sends parts of an answer one by one, each in a packet of its own. */
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
  const tooLong = 'the answer is longer than 65536 bytes'
  const tooManyPieces = 'the answer arrives in too many pieces'

  test.each([
    [
      'sends interim answers as fast as it can',
      floods('HTTP/1.1 102 Processing\r\n\r\n'),
      tooLong,
    ],
    ['sends empty lines as fast as it can', floods('\r\n'), tooLong],
    [
      'sends interim answers one by one',
      trickles('', 'HTTP/1.1 102 Processing\r\n\r\n'),
      tooManyPieces,
    ],
    [
      'sends its head byte by byte',
      trickles('HTTP/1.1 200 OK\r\na: ', 'b'),
      tooManyPieces,
    ],
  ])('%s: it fails', async (_, onSocket, reason) => {
    const sending = send(await listenTcp(onSocket), {}, 3_600_000)

    await expect(sending).rejects.toThrow(reason)
  })

  test.each([
    ['sends a body byte by byte', 'content-length: 1000000', 'x'],
    ['sends a body in small chunks', 'transfer-encoding: chunked', '1\r\nx\r\n'],
    ['never ends its body', 'content-length: 1000000', ''],
  ])('%s: it has received the plant', async (_, field, text) => {
    const head = `HTTP/1.1 200 OK\r\n${field}\r\n\r\n`

    const answer = await send(await listenTcp(trickles(head, text)), {}, 3_600_000)

    expect(answer).toEqual({ status: 200, retryAfterMs: undefined, isExcessive: true })
  })

  test('sends cookies and a body at once: the connection is used again', async () => {
    const ports = new Set<number | undefined>()
    const { url } = await listen((request, response) => {
      ports.add(request.socket.remotePort)
      response.setHeader('set-cookie', 'x'.repeat(20_000)).end('x'.repeat(20_000))
    })

    const answers = [await send(url), await send(url)]

    expect(answers.map(({ isExcessive }) => isExcessive)).toEqual([false, false])
    expect(ports.size).toBe(1)
  })
})

test('resolves to the pause that the listener asks for', async () => {
  const { url } = await listen((_, response) =>
    response.writeHead(503, { 'retry-after': '120' }).end(),
  )

  expect(await send(url)).toMatchObject({ status: 503, retryAfterMs: 120_000 })
})

function trickle(socket: Socket, text: string, head = ''): void {
  socket.write(head)
  let sentChars = 0
  const sendNext = () => {
    socket.write(text.charAt(sentChars % text.length))
    sentChars++
  }
  const timer = setInterval(sendNext, 20)
  socket.on('close', () => clearInterval(timer))
}

test.each<[string, (socket: Socket) => void, RegExp]>([
  ['resets', socket => socket.resetAndDestroy(), /ECONNRESET/],
  [
    'changes the protocol',
    socket =>
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      ),
    /closed the connection|socket hang up/,
  ],
  [
    'disconnects within the head',
    socket => socket.end('HTTP/1.1 200 O'),
    /socket hang up|Parse Error/,
  ],
  [
    'speaks another protocol',
    socket => socket.end('220 mail.example ESMTP\r\n'),
    /Parse Error/,
  ],
  [
    'sends a head without end',
    socket => socket.write(`HTTP/1.1 200 OK\r\na: ${'x'.repeat(1e6)}`),
    /Overflow|longer than 65536/i,
  ],
])(
  'fails when the listener %s, and repeats nothing on a new connection',
  async (_, onSocket, reason) => {
    let connections = 0
    const url = await listenTcp(socket => {
      connections++
      onSocket(socket)
    })
    await expect(send(url)).rejects.toThrow(reason)
    expect(connections).toBe(1)
  },
)

test('fails when nobody listens', async () => {
  await expect(send('http://127.0.0.1:1/')).rejects.toThrow('ECONNREFUSED')
})

test('says of each address of a name why it fails', async () => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]
  answerLookups(() => [null, addresses])

  const sending = send('http://shop.example:1/')

  await expect(sending).rejects.toThrow(
    /^connect ECONNREFUSED 127\.0\.0\.1:1; connect \w+ ::1:1/,
  )
})

test('an address that is slow is not given up for one that refuses', async () => {
  const port = await listenUnaccepting()
  const waiting = Array.from({ length: 2 }, () => connect(port, '127.0.0.1'))
  for (const socket of waiting) {
    // The thread ends first, and resets them.
    socket.on('error', () => {})
    await once(socket, 'connect')
  }
  const addresses = ['127.0.0.1', '127.0.0.2'].map(address => ({ address, family: 4 }))
  answerLookups(() => [null, addresses])

  await expect(send(`http://shop.example:${port}/`, {}, 1_000)).rejects.toThrow(
    'no answer',
  )
})

/** Listens in a thread that accepts nothing: the system lets two connections wait. */
async function listenUnaccepting(): Promise<number> {
  const code = `
    const { parentPort, workerData } = require('node:worker_threads')
    const server = require('node:net').createServer()
    server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port)
      Atomics.wait(workerData, 0, 0)
    })`
  const worker = new Worker(code, {
    eval: true,
    workerData: new Int32Array(new SharedArrayBuffer(4)),
  })
  onTestFinished(async () => void (await worker.terminate()))
  const [port] = await once(worker, 'message')
  return port
}

test('repeats what the system could not write to a closed connection', async () => {
  const { url } = await listen((_, response) => response.end())
  await send(url)
  const requests: ClientRequest[] = []
  const onStart = (message: unknown) => {
    const { request } = message as { request: ClientRequest }
    requests.push(request)
    if (request.reusedSocket) {
      request.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))
    }
  }
  subscribe('http.client.request.start', onStart)
  onTestFinished(() => void unsubscribe('http.client.request.start', onStart))

  expect(await send(url)).toMatchObject({ status: 200 })
  expect(requests.map(({ reusedSocket }) => reusedSocket)).toEqual([true, false])
})

test('ends when it is aborted', async () => {
  const abort = new AbortController()
  const url = await listenTcp(() => abort.abort())
  await expect(send(url, { signal: abort.signal })).rejects.toThrow('aborted')
})

test('repeats on a new connection what a listener closed while it waited', async () => {
  let requests = 0
  const sockets = new Set<Socket>()
  const { server, url } = await listen((_, response) => {
    requests++
    response.end()
  })
  server.keepAliveTimeout = 0
  server.on('connection', socket => sockets.add(socket))
  await send(url)
  await send(url)
  expect(sockets.size).toBe(1)
  // Answers the next request by a reset, as a listener does that has just given up the
  // connection.
  const [socket] = sockets
  socket?.removeAllListeners('data')
  socket?.once('readable', () => socket.resetAndDestroy())
  socket?.once('data', () => socket.resetAndDestroy())
  expect(await send(url)).toMatchObject({ status: 200 })
  expect(sockets.size).toBe(2)
  expect(requests).toBe(3)
})

describe('without --allow-private', () => {
  const guarded = (url: string) => send(url, { allowsPrivate: false })

  test.each([
    'http://0x7f.1/',
    'http://[::1]/',
    'http://localhost/',
    'https://localhost/',
  ])('refuses %s', async url => {
    await expect(guarded(url)).rejects.toThrow(
      'is a private address: the webhook needs --allow-private',
    )
  })

  test('judges a name at every connection, because its address may change', async () => {
    let connections = 0
    const { server, url } = await listen((_, response) =>
      response.setHeader('connection', 'close').end(),
    )
    server.on('connection', () => connections++)
    const { port } = new URL(url)
    const answers = [['93.184.216.34', '127.0.0.1'], ['127.0.0.1'], ['::1']]
    answerLookups(() => {
      const addresses = answers.shift() ?? []
      return [null, addresses.map(address => ({ address, family: isIP(address) }))]
    })
    for (const address of ['127.0.0.1', '127.0.0.1', '::1']) {
      await expect(guarded(`http://shop.example:${port}/`), address).rejects.toThrow(
        `${address} is a private address`,
      )
    }
    expect(connections).toBe(0)
  })

  test('uses no connection of a webhook that may', async () => {
    const { url } = await listen((_, response) => response.end())
    const byName = url.replace('127.0.0.1', 'localhost')
    expect(await send(byName)).toMatchObject({ status: 200 })
    await expect(guarded(byName)).rejects.toThrow('is a private address')
  })

  test('judges nothing else: a public address is connected to', async () => {
    const lookup = answerLookups(() => [new Error('was asked')])

    await expect(guarded('http://shop.example/')).rejects.toThrow('was asked')
    expect(lookup).toHaveBeenCalledOnce()
  })
})
