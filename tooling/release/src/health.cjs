#!/opt/plant-store/lib/node
// Exits with 0 if the server of this container can serve, and otherwise with 1.
const { readFileSync } = require('node:fs')
const { Agent, get } = require('node:http')

/** Returns the words of the server's command, which is that of process 1. */
function readCommand() {
  try {
    return readFileSync('/proc/1/cmdline', 'utf8').split('\0')
  } catch {
    // Without /proc, the environment alone says where the server listens.
    return []
  }
}

/** Returns what the server's command says of an option. */
function optionOf(name) {
  const words = readCommand()
  const at = words.findLastIndex(word => word === name || word.startsWith(`${name}=`))
  const [word = '', next = ''] = words.slice(at, at + 2)
  if (at === -1) {
    return ''
  }
  return word === name ? next : word.slice(name.length + 1)
}

const host = (optionOf('--host') || process.env.HOST || '127.0.0.1').replace(
  /^\[(.*)\]$/,
  '$1',
)
const port = optionOf('--port') || process.env.PORT || '3000'
const { BASE_URL } = process.env
const path = BASE_URL ? new URL(BASE_URL).pathname.replace(/\/$/, '') : ''
/** Addresses to listen on that are none to connect to. */
const local = { '0.0.0.0': '127.0.0.1', '::': '::1' }

const request = get(
  {
    host: local[host] ?? host,
    port,
    path: `${path}/readyz`,
    // Node's own agent may use a proxy of the environment.
    agent: new Agent(),
    signal: AbortSignal.timeout(10_000),
  },
  ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1),
)
request.on('error', () => process.exit(1))
