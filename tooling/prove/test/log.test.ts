import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../src/temporary.ts'

/** As startProgram, but with every line kept, at the level that tells most. */
test('nothing secret is in the log, nor in the store', async () => {
  using folder = temporaryFolder()
  const secret = 'given-secret-5f1c'
  const place = join(folder.path, 'store')
  mkdirSync(place)
  const { PATH } = process.env
  const child = spawn(
    process.execPath,
    [fileURLToPath(import.meta.resolve('@plant-store/api/dist/main.js'))],
    {
      env: {
        PATH,
        PORT: '0',
        DATABASE_URL: `file:${join(place, 'plants.db')}`,
        ACCESS_TOKENS: secret,
        LOG_LEVEL: 'trace',
      },
    },
  )
  let printed = ''
  const listening = Promise.withResolvers<string>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text
      const [, url] = /"url":"(http:[^"]+)"/.exec(printed) ?? []
      if (url !== undefined) listening.resolve(url)
    })
  }
  const closed = once(child, 'close')
  closed.then(() => listening.reject(new Error(printed)))
  const url = await listening.promise
  const ask = async (authorization: string, body: string) => {
    const answer = await fetch(`${url}/plants?note=query-secret-77`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json', cookie: 'session=cookie-secret-12' },
      body,
    })
    await answer.arrayBuffer()
    return answer.status
  }
  expect(await ask(`Bearer ${secret}`, '{"id":1,"name":"name-secret-31","tag":"tag-secret-32"}')).toBe(200)
  expect(await ask(`Bearer ${secret}`, '{"id":"id-secret-33","name":7}')).toBe(400)
  expect(await ask('Bearer guessed-secret-41', '{}')).toBe(401)
  expect(await ask('Basic YmFzaWMtc2VjcmV0', '{}')).toBe(401)
  child.kill('SIGTERM')
  await closed

  expect(printed).toContain('"status":200')
  expect(printed).toContain('"status":401')
  expect(printed.match(/\w+-secret-\w+|YmFzaWMtc2VjcmV0/g)).toBe(null)
  for (const file of readdirSync(place))
    expect(readFileSync(join(place, file), 'latin1')).not.toContain(secret)
}, 30_000)
