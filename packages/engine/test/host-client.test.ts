import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { listenLocally } from '@plant-store/harness'
import { wireMessage } from '@plant-store/harness/postgres-proxy'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { assert, describe, expect, inject, onTestFinished, test } from 'vitest'
import { ConnectionPool } from '../src/postgres/connection-pool.ts'

/** A certificate that nothing trusts, whose private key was thrown away. */
const certificate = `-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIURsuGN10niJEkG19vJCRWKweULQEwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBYTAgFw0yNjExMjgxOTI2MDZaGA8yMTI2MTEwNDE5MjYwNlow
DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIW74dRSJ1LE
BXrEZCpR/kaVNxzLZdeC7DS6VViWHf71eMPm9HjqWQV59d6pHwR/i8AaK3ZKNakm
zZHPWAJozGCjUzBRMB0GA1UdDgQWBBQPEbv26V7QCak2r+TTfTIWGYG21DAfBgNV
HSMEGDAWgBQPEbv26V7QCak2r+TTfTIWGYG21DAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0gAMEUCIBhXLSuJnPkr6QlVVvt7uWluRdgycYMg76DeZef0Wo7J
AiEA+dxYajMsAkBWaLPqlak8KgA5AgS4eTvmIt8yzmZIU3Q=
-----END CERTIFICATE-----
`

/** Writes a file and returns its path. */
function fileOf(text: string): string {
  const file = join(temporaryFolder(), 'file')
  writeFileSync(file, text)
  return file
}

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** A server that answers each message, and closes no connection on its own. */
async function startServer(answer: (socket: Socket, message: Buffer) => void) {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (message: Buffer) => answer(socket, message))
  })
  const port = await listenLocally(server)
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) {
      socket.destroy()
    }
  })
  return { url: `postgres://u:p@127.0.0.1:${port}/d`, sockets }
}

/** Waits until the other ends of these sockets are gone, not only half closed. */
async function expectGone(sockets: ReadonlySet<Socket>) {
  const stillThere = () => {
    for (const socket of sockets) {
      socket.write('?')
    }
    return sockets.size
  }
  await expect.poll(stillThere).toBe(0)
}

/** Tries to connect three times. Returns the reason of the last failure. */
async function failThrice(url: string): Promise<string> {
  const pool = new ConnectionPool(
    { hosts: [url], poolMode: 'session', timeoutMs: 600 },
    1,
  )
  let reason = ''
  for (let times = 0; times < 3; times++) {
    const connecting = pool.run([{ text: 'select 1' }])
    reason = await connecting.then(
      () => 'it connected',
      (error: Error) => error.message,
    )
  }
  await pool[Symbol.asyncDispose]()
  return reason
}

const takesTls = (socket: Socket) => socket.write('S')

describe('a failed attempt leaves no socket open', () => {
  test('if the key belongs to another certificate', async () => {
    const { url, sockets } = await startServer(takesTls)
    const key = `${privateKey.export({ type: 'pkcs8', format: 'pem' })}`
    const files = `sslcert=${fileOf(certificate)}&sslkey=${fileOf(key)}`

    const failure = await failThrice(`${url}?sslmode=verify-full&${files}`)

    expect(failure).toMatch(/key values mismatch/)
    await expectGone(sockets)
  })

  test.each([
    {
      why: 'the server refuses TLS',
      answer: (socket: Socket) => socket.write('N'),
      query: '?sslmode=no-verify',
      reason: 'The server does not support SSL connections',
    },
    {
      why: 'the handshake never ends',
      answer: (socket: Socket, { length }: Buffer) => length === 8 && socket.write('S'),
      query: '?sslmode=no-verify',
      reason: /timeout/,
    },
    {
      why: 'the server refuses the user',
      answer: (socket: Socket) => socket.write(errorOf('no such user')),
      query: '',
      reason: 'no such user',
    },
    {
      why: 'the server wants a way to log in that pg does not know',
      answer: (socket: Socket) => socket.write(wireMessage('R', '\0\0\0\x07')),
      query: '',
      reason: /^it requires another authentication than .*, such as GSS$/,
    },
    {
      why: 'the server refuses the settings of the session',
      answer: (socket: Socket, message: Buffer) =>
        socket.write(message.at(0) === 0 ? letIn : errorOf('no settings')),
      query: '',
      reason: 'no settings',
    },
  ])('if $why', async ({ answer, query, reason }) => {
    const { url, sockets } = await startServer(answer)

    const failure = await failThrice(url + query)

    expect(failure).toMatch(reason)
    await expectGone(sockets)
  })
})

const errorOf = (text: string) => wireMessage('E', `SFATAL\0VFATAL\0C28000\0M${text}\0\0`)

/** The user is known, and the server is ready. */
const letIn = Buffer.concat([wireMessage('R', '\0\0\0\0'), wireMessage('Z', 'I')])

test('a key whose file is gone is the reason, and is read again later', async () => {
  const key = join(temporaryFolder(), 'key')
  const url = `${inject('postgresUrl')}?sslmode=disable&sslkey=${key}`
  await using pool = new ConnectionPool(
    { hosts: [url], poolMode: 'session', timeoutMs: 5_000 },
    1,
  )
  const ask = () => pool.run([{ text: 'select 1 as one' }])

  const waiting = await Promise.allSettled([ask(), ask(), ask()])
  writeFileSync(key, '')
  await expect
    .poll(() =>
      ask().then(
        ([result]) => result?.rows,
        () => [],
      ),
    )
    .toEqual([{ one: 1 }])

  for (const outcome of waiting) {
    assert(outcome.status === 'rejected', 'no key can be read')
    expect(outcome.reason.message, 'each that waited').toContain(
      'ENOENT: no such file or directory',
    )
  }
})
