import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { readJobs, runStep, stepsOfServices } from '../src/workflow.ts'

const root = join(import.meta.dirname, '../../..')
const names = readdirSync(join(root, '.github/workflows')).map(file =>
  file.replace('.yml', ''),
)
const steps = names
  .flatMap(workflow => readJobs(root, workflow))
  .flatMap(job => job.steps)

test('every step of a workflow is a script that runs here, or listed', () => {
  const unlisted = steps.filter(step => !stepsOfServices.has(step.name))

  const withoutScript = unlisted.filter(step => step.script === undefined)

  expect(unlisted).not.toEqual([])
  expect(withoutScript).toEqual([])
})

test('the list of steps that need a service names no step that is gone', () => {
  const stepNames = steps.map(step => step.name)
  expect(stepNames).toEqual(expect.arrayContaining([...stepsOfServices.keys()]))
})

test('a step has empty inputs, and fails with its first command', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, '.github/workflows'), { recursive: true })
  writeFileSync(
    join(folder, '.github/workflows/sample.yml'),
    `
jobs:
  sample:
    steps:
      - name: Use an input
        env: { SEED: "\${{ inputs.seed }}" }
        run: '[[ -v SEED && -z $SEED ]]'
      - name: Fail
        run: |
          false
          true
`,
  )
  const [job] = readJobs(folder, 'sample')

  const outcomes = job?.steps.map(step => [step.name, runStep(folder, step)])

  expect(outcomes).toEqual([
    ['Use an input', true],
    ['Fail', false],
  ])
})
