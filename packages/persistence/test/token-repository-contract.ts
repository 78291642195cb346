import assert from 'node:assert/strict'
import { type AccessToken, hashToken, type TokenRepository } from '@plant-store/access'

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
const a = hashToken('a')
const b = hashToken('b')
const c = hashToken('c')

type Run = (repository: TokenRepository) => Promise<void>

/**
 * The promises of the port. Each takes an empty repository and rejects if it is broken.
 */
export const tokenRepositoryContract: Readonly<Record<string, Run>> = {
  async 'finds a token by its hash, exactly as it was inserted'(repository) {
    const withoutScopes = { ...lasting, name: 'new', scopes: [] }
    assert.equal(await repository.insert(lasting, a), 'inserted')
    assert.equal(await repository.insert(expiring, b), 'inserted')
    assert.equal(await repository.insert(withoutScopes, c), 'inserted')

    assert.deepEqual(await repository.find(a), lasting)
    assert.deepEqual(await repository.find(b), expiring)
    assert.deepEqual(await repository.find(c), withoutScopes)
    assert.equal(await repository.find(hashToken('d')), undefined)
  },
  async 'lists in the order of the names, which is not that of a language'(repository) {
    assert.deepEqual(await repository.list(), [])
    for (const name of ['b', 'B', 'a', 'Z', 'ä']) {
      await repository.insert({ ...lasting, name }, hashToken(name))
    }

    const names = (await repository.list()).map(({ name }) => name)
    assert.deepEqual(names, ['B', 'Z', 'a', 'b', 'ä'])
  },
  async 'refuses a second name or a taken one, and keeps the token that has it'(
    repository,
  ) {
    await repository.insert(lasting, a)

    const second = { ...expiring, name: 'lasting' }
    assert.equal(await repository.insert(expiring, a), 'name-taken')
    assert.equal(await repository.insert(second, b), 'name-taken')
    assert.deepEqual(await repository.list(), [lasting])
    assert.deepEqual(await repository.find(a), lasting)
    assert.equal(await repository.find(b), undefined)
  },
  async 'keeps the latest use of a token, and nothing of an unknown one'(repository) {
    const lastUsedAt = new Date('2026-03-04T05:06:07.890Z')
    await repository.insert(lasting, a)
    await repository.insert(expiring, b)

    await repository.markUsed(a, new Date(1))
    await repository.markUsed(a, lastUsedAt)
    await repository.markUsed(a, new Date(lastUsedAt.getTime() - 1))
    await repository.markUsed(c, lastUsedAt)

    assert.deepEqual(await repository.find(a), { ...lasting, lastUsedAt })
    assert.deepEqual(await repository.list(), [expiring, { ...lasting, lastUsedAt }])
  },
  async 'forgets a removed token at once, and frees its name'(repository) {
    await repository.insert(lasting, a)

    assert.equal(await repository.remove('other'), false)
    assert.equal(await repository.remove(''), false)
    assert.equal(await repository.remove('lasting'), true)
    assert.equal(await repository.remove('lasting'), false)
    assert.equal(await repository.find(a), undefined)
    assert.equal(await repository.insert(lasting, b), 'inserted')
  },
}
