import assert from 'node:assert/strict'
import { dirname, resolve } from 'node:path'

/**
 * The unit that a disk writes in one go. Of a write that a power cut interrupts, some
 * sectors arrive and others do not.
 */
const sectorBytes = 512

const tracedCalls =
  'openat,open,creat,close,dup,dup2,dup3,write,writev,pwrite64,pwritev,pwritev2,ftruncate,truncate,fallocate,' +
  'copy_file_range,sendfile,rename,renameat,renameat2,unlink,unlinkat,link,linkat,symlink,mkdir,mkdirat,rmdir,' +
  'fsync,fdatasync,sync_file_range,exit_group'

/**
 * Runs a command with strace, in the format of `parseCalls`. The command keeps its
 * process id.
 *
 * @param inject as in strace's `-e inject=`
 */
export const recording = (
  calls: string,
  command: readonly string[],
  inject?: string,
): readonly [string, ...string[]] => [
  'strace',
  ...(inject === undefined ? [] : ['-e', `inject=${inject}`]),
  '-D',
  '-f',
  '--seccomp-bpf',
  '-xx',
  '-s',
  '100000000',
  '-e',
  'signal=none',
  '-e',
  `trace=${tracedCalls}`,
  '-o',
  calls,
  ...command,
]

export interface Call {
  readonly name: string
  readonly args: readonly string[]
  result: number
}

/** A call begins and ends in separate lines, with other threads in between. */
type CallEvent = { readonly begins: Call } | { readonly ends: Call }

export function parseCalls(lines: readonly string[]): CallEvent[] {
  const events: CallEvent[] = []
  const unfinished = new Map<string, Call>()
  for (const line of lines) {
    const [, thread = '', resumed, name, rest = ''] =
      /^(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)$/.exec(line) ?? []
    const result = / = (-?\d+|\?)[^=]*$/.exec(rest)
    if (name) {
      const begun = begin(name, rest)
      events.push({ begins: begun })
      unfinished.set(thread, begun)
    }
    const call = unfinished.get(thread)
    if ((name || resumed) && call && result) {
      call.result = Number(result[1])
      events.push({ ends: call })
    }
  }
  return events
}

const begin = (name: string, args: string): Call => ({
  name,
  args: args.replace(/\)? +(= .*|<unfinished \.\.\.>)$/, '').split(', '),
  result: 0,
})

const bytesOf = (args: readonly string[]): Buffer => {
  const strings = [...args.join().matchAll(/"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?/g)]
  assert(
    strings.every(([, , cut]) => !cut),
    'strace cut a text off',
  )
  const digits = strings.map(([, hex]) => hex?.replaceAll('\\x', ''))
  return Buffer.from(digits.join(''), 'hex')
}

interface Change {
  /**
   * It is lost once an fsync for it has failed: no later one makes it durable, as Linux
   * counts it as written.
   */
  state: 'begun' | 'done' | 'durable' | 'lost'
}

interface Write extends Change {
  readonly offset: number
  /** `undefined` if the file was cut off at the offset. */
  readonly data: Buffer | undefined
}

type Names = Map<string, File>

interface NameChange extends Change {
  readonly folders: readonly string[]
  readonly created?: File | undefined
  readonly apply: (names: Names) => void
}

interface File {
  /** The durable state. */
  content: Buffer
  readonly writes: Write[]
}

/** The path that a descriptor is open on. */
interface Opened {
  readonly path: string
  /** `undefined` for a folder. */
  readonly file: File | undefined
  readonly appends: boolean
  position: number
}

const isSync = (name: string) => name === 'fsync' || name === 'fdatasync'
const isStreamWrite = (name: string) => name === 'write' || name === 'writev'
const pathOf = (text = '') => resolve(bytesOf([text]).toString())
const known = new Set(
  'openat rename link unlink write writev pwrite64 ftruncate fsync fdatasync exit_group'.split(
    ' ',
  ),
)

/** The content of each file by path after a power cut. */
export type Image = ReadonlyMap<string, Buffer>

/**
 * Applies a program's calls to the files below a folder, with POSIX's guarantees. An
 * fsync makes the content of one file durable, or the names in one folder, once it has
 * returned. Everything else may be lost, kept or torn, in any order, and for good if an
 * fsync for it has failed.
 */
export class RecordedDisk {
  readonly #folder: string
  readonly #names: Names
  /** The names that the folders have on disk. */
  readonly #durableNames: Names
  readonly #nameChanges: NameChange[] = []
  readonly #opened = new Map<string, Opened>()
  readonly #changesOf = new Map<Call, readonly Change[]>()

  /** @param found the durable content of the folder when the recording begins */
  constructor(folder: string, found: Image) {
    this.#folder = folder
    this.#names = new Map([...found].map(([path, content]) => [path, fileOf(content)]))
    this.#durableNames = new Map(this.#names)
  }

  /** @returns the output to anything but a file below the folder */
  begin(call: Call): string | undefined {
    const { name, args, result } = call
    if (name === 'exit_group') {
      return `exit ${args[0]}`
    }

    const opened = this.#opened.get(args[0] ?? '')
    if (opened === undefined) {
      return isStreamWrite(name) ? bytesOf(args.slice(1)).toString('latin1') : undefined
    }

    if (isSync(name)) {
      this.#beginSync(call, opened)
    } else if (result >= 0) {
      this.#beginWrite(call, opened)
    }
    return
  }

  #beginSync(call: Call, { path, file }: Opened) {
    const changes: readonly Change[] =
      file?.writes ?? this.#nameChanges.filter(({ folders }) => folders.includes(path))
    // Only earlier calls.
    const doneChanges = changes.filter(({ state }) => state === 'done')
    this.#changesOf.set(call, doneChanges)
  }

  #beginWrite(call: Call, opened: Opened) {
    const { name, args, result } = call
    if (name === 'pwrite64') {
      this.#write(call, opened, Number(args[3]), bytesOf(args.slice(1, 2)))
    } else if (name === 'ftruncate') {
      this.#write(call, opened, Number(args[1]))
    } else if (isStreamWrite(name)) {
      if (opened.appends) {
        throw new Error('the recording does not know where a write was appended')
      }
      this.#write(call, opened, opened.position, bytesOf(args.slice(1)))
      opened.position += result
    }
  }

  #write(call: Call, { file }: Opened, offset: number, bytes?: Buffer) {
    const data = bytes?.subarray(0, call.result)
    const change: Write = { offset, data, state: 'begun' }
    file?.writes.push(change)
    this.#changesOf.set(call, [change])
  }

  end(call: Call): void {
    const changes = this.#changesOf.get(call) ?? []
    this.#changesOf.delete(call)
    const hasFailed = call.result < 0
    if (isSync(call.name)) {
      // Another fsync may have ended meanwhile.
      for (const change of changes.filter(({ state }) => state === 'done')) {
        change.state = hasFailed ? 'lost' : 'durable'
      }
      this.#settle(this.#opened.get(call.args[0] ?? '')?.file)
    } else if (!hasFailed) {
      for (const change of changes) {
        change.state = 'done'
      }
      this.#endNaming(call)
    }
  }

  #endNaming(call: Call) {
    const { name, args, result } = call
    if (name === 'close') {
      this.#opened.delete(args[0] ?? '')
    } else if (name === 'openat') {
      this.#open(pathOf(args[1]), args[2] ?? '', `${result}`)
    } else if (name === 'unlink') {
      this.#unlink(pathOf(args[0]))
    } else if (name === 'rename' || name === 'link') {
      this.#giveName(pathOf(args[0]), pathOf(args[1]), name === 'rename')
    } else if (!known.has(name)) {
      this.#assertUntouched(call)
    }
  }

  /** @throws Error if a call that the recording does not know is about the folder */
  #assertUntouched({ name, args }: Call) {
    const texts = args.filter(each => each.startsWith('"'))
    const isTouched = texts.some(each => this.#isOurs(pathOf(each)))
    const isOpened = this.#opened.has(args[0] ?? '')
    assert(!(isTouched || isOpened), `the recording does not know ${name}`)
  }

  #isOurs(path: string) {
    return path === this.#folder || path.startsWith(`${this.#folder}/`)
  }

  #unlink(path: string) {
    if (this.#isOurs(path)) {
      this.#changeNames([path], names => names.delete(path))
    }
  }

  #giveName(from: string, to: string, isInstead: boolean) {
    if (!this.#isOurs(to)) {
      return
    }
    this.#changeNames([from, to], names => {
      const file = names.get(from)
      if (file) {
        names.set(to, file)
      }
      if (isInstead) {
        names.delete(from)
      }
    })
  }

  #open(path: string, flags: string, descriptor: string) {
    if (!this.#isOurs(path)) {
      return
    }
    if (flags.includes('O_CREAT') && !this.#names.has(path)) {
      const created = fileOf(Buffer.alloc(0))
      this.#changeNames([path], names => names.set(path, created), created)
    }
    const file = this.#names.get(path)
    if (flags.includes('O_TRUNC')) {
      file?.writes.push({ offset: 0, data: undefined, state: 'done' })
    }
    const appends = flags.includes('O_APPEND')
    this.#opened.set(descriptor, { path, file, appends, position: 0 })
  }

  #changeNames(paths: readonly string[], apply: NameChange['apply'], created?: File) {
    apply(this.#names)
    const folders = paths.map(each => dirname(each))
    this.#nameChanges.push({ folders, created, apply, state: 'done' })
  }

  /**
   * Applies the names, and the writes to a file, that are durable with all before them.
   */
  #settle(file: File | undefined) {
    while (this.#nameChanges[0]?.state === 'durable') {
      this.#nameChanges.shift()?.apply(this.#durableNames)
    }
    if (file) {
      const pending = file.writes.findIndex(({ state }) => state !== 'durable')
      const durable = file.writes.splice(0, pending < 0 ? file.writes.length : pending)
      file.content = contentOf({ content: file.content, writes: durable }, () => true)
    }
  }

  /** Returns the number of sectors and names that a power cut might lose now. */
  pending(): number {
    let count = 0
    this.image(() => {
      count++
      return true
    })
    return count
  }

  /**
   * @param keeps decides for each sector and name that is not durable whether it reached
   *   the disk
   */
  image(keeps: () => boolean): Image {
    const names = new Map(this.#durableNames)
    for (const { state, apply } of this.#nameChanges) {
      if (state === 'durable' || keeps()) {
        apply(names)
      }
    }
    const created = this.#nameChanges.flatMap(change => change.created ?? [])
    const files = new Set([...this.#durableNames.values(), ...created])
    const contents = new Map([...files].map(file => [file, contentOf(file, keeps)]))
    return new Map([...names].map(([path, file]) => [path, contents.get(file) as Buffer]))
  }
}

const fileOf = (content: Buffer): File => ({ content, writes: [] })

function contentOf({ content, writes }: File, keeps: () => boolean): Buffer {
  const ends = writes.map(({ offset, data }) => offset + (data?.length ?? 0))
  const image = Buffer.alloc(Math.max(content.length, ...ends))
  content.copy(image)
  let length = content.length
  for (const { offset, data, state } of writes) {
    const isKept = () => state === 'durable' || keeps()
    if (data !== undefined) {
      length = Math.max(length, copySectors(data, image, offset, isKept))
    } else if (isKept()) {
      image.fill(0, offset, length)
      length = offset
    }
  }
  return image.subarray(0, length)
}

/** Copies those sectors of a write that are kept. Returns where the last of them ends. */
function copySectors(data: Buffer, image: Buffer, offset: number, isKept: () => boolean) {
  let end = 0
  let from = 0
  while (from < data.length) {
    const sectorEnd = from + sectorBytes - ((offset + from) % sectorBytes)
    const to = Math.min(data.length, sectorEnd)
    if (isKept()) {
      data.copy(image, offset + from, from, to)
      end = offset + to
    }
    from = to
  }
  return end
}
