const { parts } = await import('/work/tooling-clone/tooling/prove/src/parts.ts')
const root = '/work/tooling-clone/apps'
const [part, scale] = process.argv.slice(2)
console.log(new Date().toISOString(), 'begin')
const { tried, failures, times } = await parts[part]({ seed: 1, scale: Number(scale), programs: { server: [process.execPath, `${root}/api/dist/main.js`], commandLine: [process.execPath, `${root}/cli/dist/main.js`] } })
console.log(new Date().toISOString(), tried, times, failures.slice(0, 10))
process.exit()
