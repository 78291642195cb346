import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { readConfig } from '../../src/config.ts'

const read = (file: string) =>
  readFileSync(new URL(`../../../../${file}`, import.meta.url), 'utf8')

interface Container {
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly ports: readonly { readonly containerPort: number }[]
  readonly volumeMounts: readonly { readonly mountPath: string }[]
  readonly [probe: `${string}Probe`]: {
    readonly httpGet: { readonly path: string; readonly port: string }
  }
}

interface Deployment {
  readonly kind: string
  readonly spec: {
    readonly replicas: number
    readonly strategy: { readonly type: string }
    readonly template: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number
        readonly securityContext: { readonly runAsUser: number }
        readonly containers: readonly [Container]
      }
    }
  }
}

const documents = parseAllDocuments(read('deploy/kubernetes.yaml'))
// The assertions show whether it has this form.
const parts = documents.map(document => document.toJS() as Deployment)
const dockerfile = read('deploy/Dockerfile')

test('the manifest of Kubernetes is right YAML with a volume and a service', () => {
  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  expect(parts.map(({ kind }) => kind)).toEqual([
    'PersistentVolumeClaim',
    'Deployment',
    'Service',
  ])
})

test('the pod is that of the image, with settings that the server takes', () => {
  const { spec } = parts[1] as Deployment
  const pod = spec.template.spec
  const [container] = pod.containers
  const { ACCESS_TOKENS_FILE, ...environment } = Object.fromEntries(
    container.env.map(({ name, value }) => [name, value]),
  )
  const secrets = container.volumeMounts.map(({ mountPath }) => mountPath)
  const config = readConfig(environment)

  expect(spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } })
  expect(secrets).toEqual(['/data', ACCESS_TOKENS_FILE?.replace(/\/[^/]+$/, '')])
  expect(dockerfile).toContain(`USER ${pod.securityContext.runAsUser}:`)
  expect(container.ports).toEqual([{ name: 'http', containerPort: config.port }])
  const stopMs = config.shutdownDelayMs + config.shutdownTimeoutMs
  expect(config.shutdownDelayMs).toBeGreaterThan(5000)
  expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(stopMs)
})

test.each([
  ['startup', '/healthz'],
  ['liveness', '/healthz'],
  ['readiness', '/readyz'],
] as const)('the %s probe asks %s, which is described', (name, path) => {
  const { spec } = parts[1] as Deployment
  const [container] = spec.template.spec.containers

  expect(container[`${name}Probe`]?.httpGet).toEqual({ path, port: 'http' })
  expect(JSON.parse(read('docs/openapi.json')).paths).toHaveProperty(path)
})
