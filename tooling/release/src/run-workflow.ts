import { join } from 'node:path'
import { type Job, readJobs, runStep, type Step, stepsOfServices } from './workflow.ts'

// Usage: node tooling/release/src/run-workflow.ts WORKFLOW [JOB]
const [workflow = 'ci', jobName] = process.argv.slice(2)
const root = join(import.meta.dirname, '../../..')

const jobs = readJobs(root, workflow)
const chosenJobs = jobs.filter(({ name }) => jobName === undefined || name === jobName)
if (chosenJobs.length === 0) {
  const names = jobs.map(({ name }) => name)
  throw new Error(`the workflow ${workflow} has only the jobs ${names.join(', ')}`)
}
for (const job of chosenJobs) {
  for (const step of job.steps) {
    runOrSkip(job, step)
  }
}

function runOrSkip(job: Job, step: Step): void {
  const title = `${job.name}: "${step.name}"`
  const instead = stepsOfServices.get(step.name)
  if (instead !== undefined) {
    console.log(`${title} needs a service. Instead: ${instead}.`)
    return
  }

  console.log(title)
  const startMs = performance.now()
  if (!runStep(root, step)) {
    throw new Error(`${title} has failed`)
  }
  const seconds = Math.round((performance.now() - startMs) / 1000)
  console.log(`${title} ran in ${seconds} s`)
}
