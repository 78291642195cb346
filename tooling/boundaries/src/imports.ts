import { parseSync, Visitor } from 'oxc-parser'

/** One mention of another module in a source file. */
export interface Import {
  /** Missing where it is put together only when the program runs. */
  readonly specifier?: string
  /** `load` is a `new URL('…', import.meta.url)`: a file that another thread or process is to run. */
  readonly kind: 'import' | 'export' | 'export-all' | 'dynamic' | 'require' | 'type' | 'load'
  readonly line: number
}

/**
 * Every module that a TypeScript source mentions, types included: from its syntax tree, so what only looks like an
 * import, in a comment or a string, is none.
 *
 * @throws Error when it can't be parsed
 */
export function importsOf(file: string, source: string): Import[] {
  const { program, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file} can not be parsed: ${errors[0]?.message}`)

  const found: Import[] = []
  const report = (kind: Import['kind'], { start }: { start: number }, specifier: Literal | undefined) => {
    const line = source.slice(0, start).split('\n').length
    const isKnown = specifier?.type === 'Literal' && typeof specifier.value === 'string'
    found.push(isKnown ? { specifier: specifier.value as string, kind, line } : { kind, line })
  }
  new Visitor({
    ImportDeclaration: node => report(node.importKind === 'type' ? 'type' : 'import', node, node.source),
    ExportNamedDeclaration(node) {
      if (node.source !== null) report(node.exportKind === 'type' ? 'type' : 'export', node, node.source)
    },
    ExportAllDeclaration: node => report('export-all', node, node.source),
    ImportExpression: node => report('dynamic', node, node.source),
    TSImportType: node => report('type', node, node.source),
    TSExternalModuleReference: node => report('require', node, node.expression),
    CallExpression(node) {
      if (isNamed(node.callee, 'require')) report('require', node, node.arguments[0])
    },
    NewExpression(node) {
      const [path, base] = node.arguments
      if (!isNamed(node.callee, 'URL') || base?.type !== 'MemberExpression') return
      if (base.object.type === 'MetaProperty' && isNamed(base.property, 'url')) report('load', node, path)
    },
  }).visit(program)
  return found.sort((a, b) => a.line - b.line)
}

interface Literal {
  readonly type: string
  readonly value?: unknown
}

function isNamed(node: { readonly type: string; readonly name?: unknown }, name: string): boolean {
  return node.type === 'Identifier' && node.name === name
}
