import { fastify } from 'fastify'
import { expect, test, vi } from 'vitest'
import manifest from '../package.json' with { type: 'json' }

vi.mock('fastify', () => import('fastify-oldest'))

/** All that is promised of the mounted routes, in the oldest Fastify that they take. */
await import('./mounted.test.ts')
await import('./entities.test.ts')

test('this is the oldest Fastify that the package takes', () => {
  expect(`^${fastify().version}`).toBe(manifest.peerDependencies.fastify)
})
