import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { makeFolder, platform } from './folder.ts'
import { makeRoot, writeImage } from './image.ts'
import { runIn, writeTar } from './run.ts'

const usage = `Makes plant-store-VERSION-${platform}.tar.gz, which runs without Node, its SHA-256 and its bill of materials.

  --root        also the file system of a container
  --image       also an image of it, in an archive (needs umoci)
  --out FOLDER  where everything is put, dist unless given
`

const { values } = parseArgs({
  options: {
    root: { type: 'boolean' },
    image: { type: 'boolean' },
    out: { type: 'string', default: 'dist' },
    help: { type: 'boolean', short: 'h' },
  },
})
if (values.help) {
  console.log(usage)
  process.exit()
}

if (platform !== `${process.platform}-${process.arch}`) {
  throw new Error(`a release is made on ${platform}`)
}
const out = resolve(values.out)
mkdirSync(out, { recursive: true })

const { name, sbom } = makeFolder(out)
const archive = join(out, `${name}.tar.gz`)
writeTar(archive, out, [name])
finish(archive)
writeFileSync(join(out, `${name}.cdx.json`), sbom)

const root = join(out, 'root')
if (values.root || values.image) {
  makeRoot(join(out, name), root)
}
if (values.image) {
  const image = join(out, `${name}.oci.tar`)
  writeImage(root, name.split('-')[2] as string, image)
  finish(image)
}

/** Writes the SHA-256 of a file beside it, and says its size. */
function finish(file: string) {
  writeFileSync(`${file}.sha256`, runIn(out, 'sha256sum', basename(file)))
  console.log(`${file}: ${(statSync(file).size / 1e6).toFixed(1)} MB`)
}
