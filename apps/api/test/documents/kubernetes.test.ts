import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { readConfig } from '../../src/config.ts'

const read = (file: string) =>
  readFileSync(new URL(`../../../../${file}`, import.meta.url), 'utf8')

const documents = parseAllDocuments(read('deploy/kubernetes.yaml'))
// The assertions show whether it has the form that is read here.
const parts = documents.map(document => document.toJS())
const { spec } = parts[1]
const pod = spec.template.spec
const [container] = pod.containers

test('the manifest of Kubernetes is right YAML with a volume and a service', () => {
  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  expect(parts.map(({ kind }) => kind)).toEqual([
    'PersistentVolumeClaim',
    'Deployment',
    'Service',
  ])
})

test('the pod is that of the image, with settings that the server takes', () => {
  const { ACCESS_TOKENS_FILE, ...environment } = Object.fromEntries(
    container.env.map(({ name, value }: { name: string; value: string }) => [
      name,
      value,
    ]),
  )
  const config = readConfig(environment)
  const stopMs = config.shutdownDelayMs + config.shutdownTimeoutMs

  expect(spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } })
  expect(container.volumeMounts).toMatchObject([
    { mountPath: '/data' },
    { mountPath: ACCESS_TOKENS_FILE.replace(/\/[^/]+$/, '') },
  ])
  expect(read('deploy/Dockerfile')).toContain(`USER ${pod.securityContext.runAsUser}:`)
  expect(container.ports).toEqual([{ name: 'http', containerPort: config.port }])
  expect(config.shutdownDelayMs).toBeGreaterThan(5000)
  expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(stopMs)
})

test('the probes ask paths that are described', () => {
  const { paths } = JSON.parse(read('docs/openapi.json'))

  for (const [probe, path] of [
    ['startupProbe', '/healthz'],
    ['livenessProbe', '/healthz'],
    ['readinessProbe', '/readyz'],
  ] as const) {
    expect(container[probe].httpGet, probe).toEqual({ path, port: 'http' })
    expect(paths, probe).toHaveProperty(path)
  }
})
