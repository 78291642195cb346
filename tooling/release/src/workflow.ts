import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

/**
 * The steps that need a service which a machine of our own does not have. Each says what
 * was tried in its place.
 */
export const stepsOfServices: ReadonlyMap<string, string> = new Map([
  ['actions/checkout', 'the clone in which this runs'],
  ['actions/setup-node', 'the Node that runs this'],
  ['Choose the folder of the store', 'the store of pnpm that is here'],
  ['actions/cache', 'the store of pnpm that is here'],
  ['actions/upload-artifact', 'the file stays where it is'],
  ['Publish', 'a test packs, installs and lints the packages'],
  [
    'Build the folder, its checksum and its bill of materials',
    'a test makes the folder, and the Dockerfile was built with Buildah',
  ],
  ['Attach them to the release', 'nothing: GitHub holds the releases'],
  [
    'Build and push, with a bill of materials and provenance',
    'the Dockerfile was built with Buildah, and its image run',
  ],
])

export interface Step {
  /** Its name, or the action without the version. */
  readonly name: string
  /** The script, unless the step is an action. */
  readonly script: string | undefined
  readonly env: Readonly<Record<string, string>>
}

export interface Job {
  readonly name: string
  readonly steps: readonly Step[]
}

/** The parts of GitHub's format that our workflows use. */
interface WrittenStep {
  readonly name?: string
  readonly uses?: string
  readonly run?: string
  readonly env?: Readonly<Record<string, string>>
}

interface WrittenWorkflow {
  readonly jobs: Readonly<Record<string, { readonly steps: readonly WrittenStep[] }>>
}

interface WrittenAction {
  readonly runs: { readonly steps: readonly WrittenStep[] }
}

/** Returns the jobs of a workflow, with the steps of our own actions in their place. */
export function readJobs(root: string, workflow: string): readonly Job[] {
  const { jobs } = readYaml<WrittenWorkflow>(root, `.github/workflows/${workflow}.yml`)
  return Object.entries(jobs).map(([name, { steps }]) => ({
    name,
    steps: steps.flatMap(step => readStep(root, step)),
  }))
}

function readStep(root: string, written: WrittenStep): readonly Step[] {
  const { uses, run, env = {} } = written
  if (uses?.startsWith('./')) {
    const action = readYaml<WrittenAction>(root, `${uses}/action.yml`)
    return action.runs.steps.flatMap(step => readStep(root, step))
  }
  const [action = 'a step without a name'] = uses?.split('@') ?? []
  return [{ name: written.name ?? action, script: run, env }]
}

function readYaml<Content>(root: string, path: string): Content {
  return parse(readFileSync(join(root, path), 'utf8'))
}

/** Runs a script as a runner does: with Bash, which ends at the first failure. */
export function runStep(root: string, step: Step): boolean {
  // A container often runs as root, without sudo.
  const sudo = 'command -v sudo > /dev/null || sudo() { "$@"; }'
  const script = `${sudo}\n${step.script}`
  const { status } = spawnSync('bash', ['-eo', 'pipefail', '-c', script], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...resolveExpressions(step.env) },
  })
  return status === 0
}

/** Inputs that nobody gave are empty. */
function resolveExpressions(
  env: Readonly<Record<string, string>>,
): Record<string, string> {
  const resolved: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) {
    resolved[name] = value.replace(/\$\{\{.*?\}\}/g, '')
  }
  return resolved
}
