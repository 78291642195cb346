/* global SwaggerUIBundle */

// Everything here goes to where the page came from, whatever the server believes to be called.
const here = new URL('.', location.href)

/** A page that reads JSON into JavaScript's numbers shows other ids than there are: these keep their digits. */
const exactNumbers = (_name, value, { source }) => (typeof value === 'number' ? JSON.rawJSON(source) : value)

/** The bounds of an int64 go into words: as numbers they would be shown, and held against what is typed, rounded. */
function withBoundsInWords(text) {
  return JSON.parse(text, (_name, value, { source }) => {
    if (typeof value === 'number') return Number.isSafeInteger(value) ? value : source
    if (value?.format !== 'int64') return value
    const { minimum, maximum, description, ...schema } = value
    return { ...schema, description: `${description} (an integer from ${minimum} to ${maximum})` }
  })
}

function written(text) {
  try {
    return JSON.stringify(JSON.parse(text, exactNumbers), null, 2)
  } catch {
    return text
  }
}

const exactAnswers = () => ({
  wrapComponents: {
    responseBody:
      (Body, { React }) =>
      props => {
        const isJson = /json/i.test(props.contentType) && typeof props.content === 'string'
        const exact = isJson && { content: written(props.content), contentType: 'text/plain' }
        return React.createElement(Body, { ...props, ...exact })
      },
  },
})

const description = await fetch(new URL('openapi.json', here))
SwaggerUIBundle({
  dom_id: '#reference',
  spec: {
    ...withBoundsInWords(await description.text()),
    servers: [{ url: here.pathname.replace(/\/$/, '') || '/' }],
  },
  plugins: [exactAnswers],
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
})
