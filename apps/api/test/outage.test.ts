import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { LogLine, Server } from '@plant-store/harness'
import { query, startPostgres } from '@plant-store/harness/postgres'
import { mayNotMount, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, onTestFinished, test } from 'vitest'
import { alone, ask, start } from './ask.ts'

let lastId = 0

/**
 * Creates plants at once, each over a connection of its own, so that every thread answers
 * some. Resolves to the statuses.
 */
async function create(server: Server, count: number): Promise<number[]> {
  const createOne = async () => {
    lastId++
    const body = `{"id":${lastId},"name":"a"}`
    const answer = await ask(server, 'POST /plants', { headers: alone, body })
    return answer.status
  }
  return Promise.all(Array.from({ length: count }, createOne))
}

const linesBesides = (program: Server): LogLine[] =>
  program.log.filter(({ msg }) => !/^(listening|answered)$/.test(msg))
const answered = (program: Server, status: number) =>
  program.log.filter(line => line.msg === 'answered' && line.status === status)

/** Leaves no room on the disk that the file is on. */
function fill(file: string): void {
  const descriptor = openSync(file, 'w')
  try {
    for (;;) {
      writeSync(descriptor, Buffer.alloc(4096))
    }
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' })
  } finally {
    closeSync(descriptor)
  }
}

test('a full disk is one line with the reason, and one when it has room', async context => {
  const folder = temporaryFolder()
  const mountArguments = ['-t', 'tmpfs', '-o', 'size=1m', 'none', folder]
  if (spawnSync('mount', mountArguments).status !== 0) {
    return context.skip(mayNotMount)
  }
  onTestFinished(() => void spawnSync('umount', ['-l', folder]))
  mkdirSync(join(folder, 'store'))
  const databaseUrl = `file:${join(folder, 'store', 'plants.db')}`
  await using program = await start({ HTTP_THREADS: '2' }, { databaseUrl })
  expect(await create(program, 1)).toEqual([200])
  fill(join(folder, 'ballast'))
  const refused: number[] = []
  // The writer tries each second whether it can commit.
  const triedOnceMs = performance.now() + 1_500
  while (performance.now() < triedOnceMs) {
    refused.push(...(await create(program, 20)))
    const readiness = await ask(program, 'GET /readyz')
    expect(readiness.status, readiness.text).toBe(503)
  }
  expect(new Set(refused)).toEqual(new Set([503]))
  await expect
    .poll(() => answered(program, 503).length)
    .toBeGreaterThanOrEqual(refused.length)
  await expect.poll(() => linesBesides(program)).toHaveLength(1)
  expect(linesBesides(program)).toMatchObject([
    {
      level: 'error',
      msg: 'the store is failing',
      reason: 'the disk is full (SQLITE_FULL)',
    },
  ])
  const figures = async () => (await ask(program, 'GET /metrics')).text
  expect(await figures()).toMatch(
    /^plant_store_ready 0\n[\s\S]*^plant_store_failure\{reason="the disk is full \(SQLITE_FULL\)"\} 1$/m,
  )
  const lineChars = answered(program, 503).map(line => JSON.stringify(line).length)
  expect(Math.max(...lineChars)).toBeLessThan(300)

  rmSync(join(folder, 'ballast'))
  await expect.poll(() => linesBesides(program)).toHaveLength(2)
  expect(linesBesides(program)[1]).toMatchObject({
    level: 'info',
    msg: 'the store has recovered',
  })
  expect(await create(program, 5)).toEqual(Array(5).fill(200))
  expect(await figures()).toMatch(/^plant_store_ready 1$/m)
  expect(await figures()).not.toMatch(/^plant_store_failure\{/m)
  expect(await program.end('SIGTERM')).toBe(0)
  expect(linesBesides(program).map(({ msg }) => msg)).toEqual([
    'the store is failing',
    'the store has recovered',
    'stopping',
    'stopped',
  ])
})

test('a warning and a stop of PostgreSQL are a line in the log for each reason', async () => {
  await using server = await startPostgres()
  await using program = await start({ HTTP_THREADS: '2' }, { databaseUrl: server.url })
  await query(
    server.url,
    `create function warn() returns trigger language plpgsql as $$ begin
      raise warning 'database must be vacuumed';
      return new;
    end $$;
    create trigger warn before insert on plants for each row execute function warn()`,
  )
  expect(await create(program, 1)).toEqual([200])
  await expect.poll(() => linesBesides(program)).toHaveLength(1)
  expect(linesBesides(program)).toMatchObject([
    {
      level: 'warn',
      msg: 'the database server warns',
      warning: 'database must be vacuumed',
    },
  ])
  await query(server.url, 'drop trigger warn on plants')
  expect(await create(program, 40)).toEqual(Array(40).fill(200))
  await server.stop()
  // Nobody else has asked anything of it: the figures notice.
  expect((await ask(program, 'GET /metrics')).text).toMatch(/^plant_store_ready 0$/m)
  expect(await create(program, 100)).toEqual(Array(100).fill(503))
  const failures = () =>
    linesBesides(program).filter(({ msg }) => msg === 'the store is failing')
  const reasons = () => failures().map(({ reason }) => reason)
  await expect
    .poll(reasons)
    .toContainEqual(expect.stringMatching(/ECONNREFUSED 127\.0\.0\.1:\d+/))
  expect(failures()[0]).toMatchObject({
    level: 'error',
    store: expect.stringMatching(/^postgres:\/\/postgres@127/),
  })
  expect(JSON.stringify(program.log)).not.toContain('secret')
  expect(reasons()).toEqual([...new Set(reasons())])
})
