// A plugin of Stryker that excludes messages: no test should notice their wording.

/** A node of the code in Babel's form. */
interface Path {
  readonly node: {
    readonly type: string
    readonly callee?: { readonly name?: string }
    readonly id?: { readonly name?: string }
    readonly param?: { readonly name?: string }
    readonly handler?: { readonly param?: { readonly name?: string } } | null
    readonly finalizer?: unknown
  }
  readonly parentPath: Path | null
}

function shouldIgnore(path: Path): string | undefined {
  const { type, id, param } = path.node
  const parent = path.parentPath?.node
  if (/^(String|Template)Literal$/.test(type) && isInError(path)) return 'the words of an error'
  const isDisposing = parent?.finalizer === path.node && /^e_\d+$/.test(parent?.handler?.param?.name ?? '')
  if (isDisposing || /^e_\d+$/.test(param?.name ?? '') || /^env_\d+$/.test(id?.name ?? ''))
    return "the compiler's, for `using`"
  return undefined
}

/** Returns whether the node is an argument of `new …Error(…)` or `new Failure(…)`, or part of one. */
function isInError({ node, parentPath }: Path): boolean {
  if (node.type === 'NewExpression' && /(Error|Failure)$/.test(node.callee?.name ?? '')) return true
  return parentPath !== null && !/Function/.test(parentPath.node.type) && isInError(parentPath)
}

export const strykerPlugins = [{ kind: 'Ignore', name: 'wording', value: { shouldIgnore } }]
