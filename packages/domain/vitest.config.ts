import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    coverage: {
      // What ships is what is tested; the maps lead back to the source.
      include: ['dist/**/*.js'],
      reporter: ['text', 'html'],
      thresholds: { statements: 100, branches: 100, functions: 100, lines: 100 },
    },
  },
})
