import { texts } from '@plant-store/domain/testing'
import { mintSecret, signedHeaders } from '@plant-store/webhooks'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'

test('the verifier of Standard Webhooks accepts every text', () => {
  const secret = mintSecret()
  for (const name of texts) {
    const body = JSON.stringify({ name })
    const headers = signedHeaders({ id: 'a', sentAtMs: Date.now(), body }, secret)
    expect(new Webhook(secret).verify(body, headers), name).toEqual({ name })
  }
})

test('the signature is the one that the standard gives as an example', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' as never
  const body = '{"test": 2432232314}'
  const message = {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    sentAtMs: 1_614_265_330_999,
    body,
  }
  const headers = signedHeaders(message, secret)
  expect(headers).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test('secrets are 256 random bits', () => {
  expect(mintSecret()).toMatch(/^whsec_[\w+/]{43}=$/)
  expect(mintSecret()).not.toBe(mintSecret())
})
