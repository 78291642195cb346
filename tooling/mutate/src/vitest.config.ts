import { existsSync, globSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { configDefaults, mergeConfig, type ViteUserConfig } from 'vitest/config'
import { BaseSequencer, type InlineConfig, type TestSpecification } from 'vitest/node'
import { freshBuild } from '../../vitest.config.ts'

/** Runs quick tests first: they notice most mutants, and the first failure ends a run. */
class QuickFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const msOf = (file: TestSpecification) => this.ctx.cache.getTestSpecificationResult(file)?.duration ?? 0
    return files.toSorted((a, b) => msOf(a) - msOf(b))
  }
}

// The folder of the package whose code is changed.
const ownFile = resolve('vitest.config.ts')
const own: ViteUserConfig = existsSync(ownFile) ? (await import(pathToFileURL(ownFile).href)).default : {}

const { TESTS } = process.env
const only = TESTS ? TESTS.split(',') : undefined

/** Nothing is built again, as the build contains the changes. */
const globalSetup = ({ globalSetup = [] }: Pick<InlineConfig, 'globalSetup'> = {}) =>
  [globalSetup].flat().filter(file => file !== freshBuild)

/** A project has files of its own: of those, the ones that are asked for. */
const projects = own.test?.projects?.flatMap(project => {
  if (typeof project !== 'object' || !('test' in project)) return [project]
  const test = { ...project.test, globalSetup: globalSetup(project.test) }
  if (only === undefined) return [{ ...project, test }]
  const files = globSync(test.include ?? [], { exclude: test.exclude ?? [] })
  const include = files.filter(file => only.includes(file))
  return include.length > 0 ? [{ ...project, test: { ...test, include } }] : []
})

/** Leads imports of sources to the build, which contains the changes. */
const built = {
  name: 'built',
  enforce: 'pre',
  resolveId(id: string, importer = '') {
    const path = resolve(dirname(importer), id)
    const source =
      /^\.\..*\.ts$/.test(id) && path.startsWith(resolve('src')) && path.slice(resolve('src').length)
    const file = source && join(resolve('dist'), source.replace(/ts$/, 'js'))
    // A program is built into one bundle.
    return file && existsSync(file) ? file : undefined
  },
}

/** Tests the build: no source is imported. */
const onBuilt: ViteUserConfig = {
  ...own,
  ssr: {},
  test: {
    ...own.test,
    ...(projects && { projects }),
    globalSetup: globalSetup(own.test),
  },
}

export default mergeConfig(onBuilt, {
  plugins: [built],
  test: {
    // What a file reaches while loading concerns only its own tests.
    isolate: true,
    setupFiles: [join(import.meta.dirname, 'follow.ts')],
    // A change that stops a test forever costs as much.
    testTimeout: 15_000,
    hookTimeout: 15_000,
    sequence: { sequencer: QuickFirst },
    // It measures time, and takes minutes with every expression counted.
    exclude: [...configDefaults.exclude, 'test/long-texts.test.ts'],
    ...(only && { include: only }),
  },
})
