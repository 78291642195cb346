import type { MicromarkToken, Rule } from 'markdownlint'

const wordsMax = 35

const avoided =
  /\b(can not|stands|tells|is there|comes in|gives|whoever|anew|so many|who (?:asks|opens)|admits who|of the answers['’]|it can['’]t be told|none of its business|its own affair|by itself|on its own|what is more|what it takes|as many \w+ as it takes|without a transfer coding but|the plant it is for|needs to be there|again on your machine|why it is so|simply|just|easily|robust|seamless|blazing|powerful)\b/gi

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' })

/** Returns the long sentences and the avoided phrases in a paragraph on one line. */
export function proseFaults(prose: string): readonly { detail: string; context?: string }[] {
  const long = [...sentences.segment(prose)].flatMap(({ segment }) => {
    const count = segment.split(' ').filter(word => /[\p{L}\p{N}]/u.test(word)).length
    return count > wordsMax ? [{ detail: `${count} words`, context: segment }] : []
  })
  return [...long, ...[...prose.matchAll(avoided)].map(([phrase]) => ({ detail: `avoid "${phrase}"` }))]
}

/** A rule of markdownlint for all text outside code: sentences are short, and some phrases have better ones. */
const rule: Rule = {
  names: ['plain-english'],
  description: `Sentences have at most ${wordsMax} words, and no avoided phrase`,
  tags: ['prose'],
  parser: 'micromark',
  function({ parsers: { micromark } }, onError) {
    for (const { startLine: lineNumber, text } of findTexts(micromark.tokens)) {
      const prose = plainText(text)
      for (const fault of proseFaults(prose)) onError({ lineNumber, ...fault })
    }
  },
}
export default rule

const textTypes = new Set(['paragraph', 'atxHeadingText', 'tableContent'])

const findTexts = (tokens: readonly MicromarkToken[]): MicromarkToken[] =>
  tokens.flatMap(token => (textTypes.has(token.type) ? [token] : findTexts(token.children)))

/** A code span counts as one word that may begin a sentence. The address of a link is no text. */
const plainText = (markdown: string) =>
  markdown
    .replaceAll(/(`+).*?\1/gs, 'Code')
    .replaceAll(/\]\([^)]*\)/g, '')
    .replaceAll(/[*[\]]/g, '')
    .replaceAll(/\s+/g, ' ')
