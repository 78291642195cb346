/* global SwaggerUIBundle */

// Requests go to the origin of the page, even if BASE_URL differs. The URL of the page may
// have a name and a password, with which no request can be made.
const here = new URL('.', `${location.origin}${location.pathname}`)

/** Keeps the digits of an id, which a JavaScript number would round. */
const exactNumbers = (_name, value, { source }) =>
  typeof value === 'number' ? JSON.rawJSON(source) : value

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
        const isJson =
          /json/i.test(props.contentType) && typeof props.content === 'string'
        const exact = isJson && {
          content: written(props.content),
          contentType: 'text/plain',
        }
        return React.createElement(Body, { ...props, ...exact })
      },
  },
})

/**
 * Names a downloaded answer by what it is. Swagger UI names plain text `.html`, and a browser would run the script in a
 * plant's name when the file is opened.
 */
const safeDownloads = () => ({
  wrapComponents: {
    HighlightCode:
      (HighlightCode, { React }) =>
      props => {
        const extension = isJson(props.children) ? 'json' : 'txt'
        const fileName = props.fileName?.replace(/[^.]*$/, extension)
        return React.createElement(HighlightCode, { ...props, fileName })
      },
  },
})

function isJson(text) {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Fills in the lines of a batch as they are. Swagger UI takes any media type with `json` in its name for JSON. */
const plainLines = () => ({
  afterLoad() {
    const { getSampleSchema } = this.fn
    this.fn.getSampleSchema = (schema, mediaType, ...more) =>
      getSampleSchema(
        schema,
        mediaType === 'application/x-ndjson' ? 'text/plain' : mediaType,
        ...more,
      )
  },
})

/** The token outlives a reload of the tab, and nothing else. */
const tokenKept = () => ({
  statePlugins: {
    auth: {
      wrapActions: {
        authorize: original => given => {
          tokenShown = given.bearerAuth.value
          sessionStorage.setItem(tokenKey, tokenShown)
          return original(given)
        },
        logout: original => given => {
          tokenShown = null
          sessionStorage.removeItem(tokenKey)
          return original(given)
        },
      },
    },
  },
})
const tokenKey = `${here.pathname} token`
/** The token that this page has. Another page of the tab may sign in or out. */
let tokenShown = sessionStorage.getItem(tokenKey)

// A page that the browser has kept in memory may be older than a sign-out.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted && sessionStorage.getItem(tokenKey) !== tokenShown) {
    document.body.hidden = true
    location.reload()
  }
})

const dark = matchMedia('(prefers-color-scheme: dark)')
const followSystem = () =>
  document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', followSystem)
followSystem()

const description = await fetch(new URL('openapi.json', here))
const page = SwaggerUIBundle({
  dom_id: '#reference',
  spec: {
    ...(await description.json()),
    servers: [{ url: here.pathname.replace(/\/$/, '') || '/' }],
  },
  plugins: [exactAnswers, safeDownloads, plainLines, tokenKept],
  onComplete() {
    const token = sessionStorage.getItem(tokenKey)
    if (token !== null) {
      page.preauthorizeApiKey('bearerAuth', token)
    }
  },
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
})
