export { default } from '../../tooling/vitest.config.ts'
