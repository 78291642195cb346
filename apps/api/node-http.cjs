// An `import` of node:http reads all of its exports. One of them loads undici: 80 ms and 4 MiB in each thread.
module.exports = process.getBuiltinModule('node:http')
