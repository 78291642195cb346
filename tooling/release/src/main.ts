import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { writeSha256, writeTar } from './archive.ts'
import { makeFolder } from './folder.ts'
import { makeRoot, writeImage } from './image.ts'
import { nodePackages, type Platform } from './node.ts'

const usage = `Makes plant-store-VERSION-PLATFORM.tar.gz, which runs without Node, its SHA-256 and its bill of materials.

  --all         for ${Object.keys(nodePackages).join(', ')}; else only for the platform of this machine
  --root        also the file system of a container, of the platform of this machine
  --image       also an image of it, in an archive (needs umoci)
  --out FOLDER  where everything is put, dist unless given
`

const { values } = parseArgs({
  options: {
    all: { type: 'boolean' },
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

const ours = `${process.platform}-${process.arch}`
const platforms = (Object.keys(nodePackages) as Platform[]).filter(each => values.all || each === ours)
if (platforms.length === 0) throw new Error(`there is no release for ${ours}`)
const out = resolve(values.out)
mkdirSync(out, { recursive: true })

for (const platform of platforms) {
  const { name, sbom } = makeFolder(platform, out)
  const archive = join(out, `${name}.tar.gz`)
  await writeTar([name], archive, { from: out })
  await writeSha256(archive)
  writeFileSync(join(out, `${name}.cdx.json`), sbom)
  report(archive)

  if (platform !== ours || !(values.root || values.image)) continue
  const root = join(out, 'root')
  makeRoot(join(out, name), root)
  if (!values.image) continue
  const image = join(out, `${name}.oci.tar`)
  await writeImage(root, name.split('-')[2] as string, image)
  await writeSha256(image)
  report(image)
}

function report(file: string): void {
  console.log(`${file}: ${(statSync(file).size / 1e6).toFixed(1)} MB`)
}
