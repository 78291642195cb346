/**
 * Escapes what a terminal would obey, as JSON does: control characters, and those that
 * turn the direction of a text.
 */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
