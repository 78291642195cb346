import assert from 'node:assert/strict'
import { type AccessToken, hashToken, type TokenRepository } from '@plant-store/access'

/** One promise of the port. `run` takes an empty repository and rejects if it breaks the promise. */
export interface TokenRepositoryCase {
  readonly name: string
  run(repository: TokenRepository): Promise<void>
}

const lasting: AccessToken = {
  name: 'lasting',
  scopes: ['plants:read', 'plants:write', 'metrics:read'],
  createdAt: new Date('2026-01-02T03:04:05.678Z'),
}
const expiring: AccessToken = {
  name: 'expiring',
  scopes: ['plants:read'],
  createdAt: new Date(0),
  expiresAt: new Date('2100-01-01T00:00:00.001Z'),
}

const promises: Record<string, TokenRepositoryCase['run']> = {
  'finds a token by its hash, exactly as it was inserted': async repository => {
    assert.equal(await repository.insert(lasting, hashToken('a')), 'inserted')
    assert.equal(await repository.insert(expiring, hashToken('b')), 'inserted')
    assert.deepEqual(await repository.find(hashToken('a')), lasting)
    assert.deepEqual(await repository.find(hashToken('b')), expiring)
    // It is good for nothing yet.
    await repository.insert({ ...lasting, name: 'new', scopes: [] }, hashToken('c'))
    assert.deepEqual(await repository.find(hashToken('c')), {
      ...lasting,
      name: 'new',
      scopes: [],
    })
    assert.equal(await repository.find(hashToken('d')), undefined)
  },
  'lists in the order of the names, which is not that of a language':
    async repository => {
      assert.deepEqual(await repository.list(), [])
      for (const name of ['b', 'B', 'a', 'Z', 'ä']) {
        await repository.insert({ ...lasting, name }, hashToken(name))
      }
      const names = (await repository.list()).map(({ name }) => name)
      assert.deepEqual(names, ['B', 'Z', 'a', 'b', 'ä'])
    },
  'refuses a second name for a token': async repository => {
    await repository.insert(lasting, hashToken('a'))
    assert.equal(await repository.insert(expiring, hashToken('a')), 'name-taken')
    assert.deepEqual(await repository.list(), [lasting])
  },
  'refuses a taken name and keeps the token that has it': async repository => {
    await repository.insert(lasting, hashToken('a'))
    assert.equal(
      await repository.insert({ ...expiring, name: 'lasting' }, hashToken('b')),
      'name-taken',
    )
    assert.deepEqual(await repository.find(hashToken('a')), lasting)
    assert.equal(await repository.find(hashToken('b')), undefined)
  },
  'keeps when a token was last used, the latest of what it is told': async repository => {
    await repository.insert(lasting, hashToken('a'))
    await repository.insert(expiring, hashToken('b'))
    const later = new Date('2026-03-04T05:06:07.890Z')
    for (const usedAt of [new Date(1), later, new Date(later.getTime() - 1)]) {
      await repository.markUsed(hashToken('a'), usedAt)
    }
    await repository.markUsed(hashToken('c'), later)
    assert.deepEqual(await repository.find(hashToken('a')), {
      ...lasting,
      lastUsedAt: later,
    })
    assert.deepEqual(await repository.list(), [
      expiring,
      { ...lasting, lastUsedAt: later },
    ])
  },
  'forgets a removed token at once, and frees its name': async repository => {
    await repository.insert(lasting, hashToken('a'))
    for (const name of ['other', '']) {
      assert.equal(await repository.remove(name), false)
    }
    assert.equal(await repository.remove('lasting'), true)
    assert.equal(await repository.remove('lasting'), false)
    assert.equal(await repository.find(hashToken('a')), undefined)
    assert.equal(await repository.insert(lasting, hashToken('b')), 'inserted')
  },
}

export const tokenRepositoryContract: readonly TokenRepositoryCase[] = Object.entries(
  promises,
).map(([name, run]) => ({ name, run }))
