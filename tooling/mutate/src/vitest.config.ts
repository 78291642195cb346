import { existsSync, globSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { configDefaults, mergeConfig, type ViteUserConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { freshBuild } from '../../vitest.config.ts'

/** Most mutants fall to quick tests, and the first failure ends a run. */
class QuickFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const msOf = (file: TestSpecification) => this.ctx.cache.getTestSpecificationResult(file)?.duration ?? 0
    return files.toSorted((a, b) => msOf(a) - msOf(b))
  }
}

// The folder is that of the package whose code is changed.
const ownFile = resolve('vitest.config.ts')
const own: ViteUserConfig = existsSync(ownFile) ? (await import(pathToFileURL(ownFile).href)).default : {}

const { TESTS } = process.env
const only = TESTS ? TESTS.split(',') : undefined

/** A project has files of its own: of those, the ones that are asked for. */
const projects = own.test?.projects?.flatMap(project => {
  if (only === undefined || typeof project !== 'object' || !('test' in project)) return [project]
  const files = globSync(project.test?.include ?? [], { exclude: project.test?.exclude ?? [] })
  const include = files.filter(file => only.includes(file))
  return include.length > 0 ? [{ ...project, test: { ...project.test, include } }] : []
})

/** Some tests import a source of their own package: here they must see what is built of it. */
const built = {
  name: 'built',
  enforce: 'pre',
  resolveId(id: string, importer = '') {
    const path = resolve(dirname(importer), id)
    const source =
      /^\.\..*\.ts$/.test(id) && path.startsWith(resolve('src')) && path.slice(resolve('src').length)
    const file = source && join(resolve('dist'), source.replace(/ts$/, 'js'))
    // What is built of a program is one bundle.
    return file && existsSync(file) ? file : undefined
  },
}

/** What is built is changed: nothing leads the tests to the sources, or builds again. */
const onBuilt: ViteUserConfig = {
  ...own,
  ssr: {},
  test: {
    ...own.test,
    ...(projects && { projects }),
    globalSetup: [own.test?.globalSetup ?? []].flat().filter(file => file !== freshBuild),
  },
}

export default mergeConfig(onBuilt, {
  plugins: [built],
  test: {
    // What a file reaches while it loads the code concerns its own tests.
    isolate: true,
    setupFiles: [join(import.meta.dirname, 'follow.ts')],
    // What a change stops for ever costs as much.
    testTimeout: 15_000,
    hookTimeout: 15_000,
    sequence: { sequencer: QuickFirst },
    // Measures time: with every expression counted, it takes minutes.
    exclude: [...configDefaults.exclude, 'test/long-texts.test.ts'],
    ...(only && { include: only }),
  },
})
