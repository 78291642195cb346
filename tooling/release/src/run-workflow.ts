import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createVariables, readJobs, runStep, stepsOfServices } from './workflow.ts'

// Usage: node tooling/release/src/run-workflow.ts WORKFLOW [JOB]
const [workflow = 'ci', jobName] = process.argv.slice(2)
const root = join(import.meta.dirname, '../../..')

const variables = createVariables()
process.on('exit', () => rmSync(variables.folder, { recursive: true }))

const jobs = readJobs(root, workflow).filter(
  ({ name }) => jobName === undefined || name === jobName,
)
for (const job of jobs) {
  for (const step of job.steps) {
    const instead = stepsOfServices.get(step.name)
    if (instead !== undefined) {
      console.log(`${job.name}: "${step.name}" needs a service. Instead: ${instead}.`)
      continue
    }
    console.log(`${job.name}: "${step.name}"`)
    const startedAt = performance.now()
    const hasSucceeded = runStep(root, step, variables.file)
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    console.log(
      `${job.name}: "${step.name}" ${hasSucceeded ? 'ran' : 'FAILED'}, ${seconds} s`,
    )
    if (!hasSucceeded) {
      process.exit(1)
    }
  }
}
