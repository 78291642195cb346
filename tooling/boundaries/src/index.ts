export { type Import, importsOf } from './imports.ts'
export { drawPackages, withPicture } from './picture.ts'
export { type Allowance, rootViolations, table, violations } from './rules.ts'
export { type Manifest, type Package, readWorkspace, type SourceFile } from './workspace.ts'
