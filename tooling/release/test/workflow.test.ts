import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { createVariables, readJobs, runStep, stepsOfServices } from '../src/workflow.ts'

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

test('a step fails with its first command, and hands variables on', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, '.github/workflows'), { recursive: true })
  writeFileSync(
    join(folder, '.github/workflows/sample.yml'),
    `
jobs:
  sample:
    steps:
      - name: Hand a variable on
        run: echo "ANSWER=$RUNNER_TEMP/42" >> "$GITHUB_ENV"
      - name: Use it
        env: { SEED: "\${{ inputs.seed }}" }
        run: '[[ $ANSWER = */42 && -z $SEED ]]'
      - name: Fail
        run: |
          false
          true
`,
  )
  const { file } = createVariables()
  const [job] = readJobs(folder, 'sample')

  const outcomes = job?.steps.map(step => [step.name, runStep(folder, step, file)])

  expect(outcomes).toEqual([
    ['Hand a variable on', true],
    ['Use it', true],
    ['Fail', false],
  ])
})
