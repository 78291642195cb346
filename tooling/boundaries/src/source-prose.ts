import { proseFaults } from './plain-english.ts'

/** Returns the faults of the comments in a TypeScript source, and the avoided phrases in its texts. */
export function sourceFaults(source: string): readonly string[] {
  const comments = [...source.matchAll(/^ *\/\*\*[\s\S]*?\*\/|(?:^ *\/\/[^\n]*\n)+/gm)].flatMap(([comment]) =>
    comment
      .replaceAll(/^ *(?:\/\*\*|\/\/|\*(?!\/))|\*\/$/gm, '')
      .split(/\n\s*\n|^(?=\s*@)/m)
      .flatMap(faultsOf),
  )
  const texts = [...source.matchAll(/'[^'\n]+'|`[^`]+`/g)].flatMap(([text]) => faultsOf(text))
  return [...comments, ...texts.filter(fault => fault.startsWith('avoid'))]
}

function faultsOf(text: string): readonly string[] {
  const prose = text.replaceAll(/\s+/g, ' ').trim()
  return proseFaults(prose).map(({ detail }) => `${detail}: ${prose}`)
}
