import { NoAnswerError, RefusedError } from '@plant-store/client'
import { button, byId, createDialog, element, removeDialog } from './dom.ts'

/** The address of the store, without a name and password that the page's may have. */
export const base = new URL('.', `${location.origin}${location.pathname}`)

/** The key of the access token in the tab's storage. The API reference uses the same. */
const key = `${base.pathname} token`

export const signInButton = byId('sign-in')
export const signOutButton = byId('sign-out')

/** The storage of the tab, `undefined` in a browser that blocks it. */
const storage = findStorage()

/**
 * The token that this page knows. Without a storage it is the only one, and is lost at a
 * reload.
 */
let tokenInMemory = ''

function findStorage() {
  try {
    return sessionStorage
  } catch {
    return
  }
}

export function token(): string {
  return (storage ? storage.getItem(key) : tokenInMemory) ?? ''
}

/** Returns whether another page of the tab has signed in or out. */
export function hasOtherToken(): boolean {
  return token() !== tokenInMemory
}

function keepToken(text: string) {
  document.body.classList.remove('may-only-read')
  tokenInMemory = text
  text === '' ? storage?.removeItem(key) : storage?.setItem(key, text)
  showSession()
}

/** Shows the button that signs in, or the one that signs out. */
function showSession() {
  document.body.classList.toggle('signed-in', token() !== '')
}

tokenInMemory = token()
showSession()

export function signOut(): void {
  keepToken('')
}

export function mayChange(): boolean {
  return !document.body.classList.contains('may-only-read')
}

/** Notes that the token may only read, as the store has said. */
export function forbidChanges(): void {
  document.body.classList.add('may-only-read')
}

export const isRefused = (error: unknown, status: number) =>
  error instanceof RefusedError && error.status === status

/** Returns what went wrong: as the store words it, with its number. */
export function messageOf(error: unknown): string {
  if (error instanceof NoAnswerError && error.reason !== 'unreadable-answer') {
    return 'the store did not answer'
  }
  if (error instanceof RefusedError) {
    return `${error.message} (${error.number})`
  }
  return error instanceof Error ? error.message : `${error}`
}

/**
 * Runs a call, and asks for a token as long as the store accepts none for it. A call is
 * repeated after a 401 or 403.
 */
export async function signedIn<Result>(call: () => Promise<Result>): Promise<Result> {
  if (token() === '' && !(await askToken(''))) {
    throw new Error('Sign in to see what is in the store.')
  }
  for (;;) {
    const tokenSent = token()
    try {
      return await call()
    } catch (error) {
      noteRefusal(error, tokenSent)
      // Another call may have asked for a new token meanwhile.
      const isOther = token() !== '' && token() !== tokenSent
      if (!isOther && !(await askToken(messageOf(error)))) {
        throw error
      }
    }
  }
}

/** @throws the error if no other token would help */
function noteRefusal(error: unknown, tokenSent: string) {
  const isForbidden = isRefused(error, 403)
  if (!isForbidden && !isRefused(error, 401)) {
    throw error
  }
  if (token() === tokenSent) {
    isForbidden ? forbidChanges() : signOut()
  }
}

let question: Promise<boolean> | undefined

/** Resolves to whether a token was given. Calls that ask together share one dialog. */
function askToken(refusal: string) {
  question ??= openSignIn(refusal).finally(() => {
    question = undefined
  })
  return question
}

function openSignIn(refusal: string): Promise<boolean> {
  return new Promise(resolve => {
    const heading = element('h2', {}, 'Sign in')
    const end = (isGiven: boolean) => {
      removeDialog(dialog)
      resolve(isGiven)
    }
    const dialog = createDialog('sign-in', heading, () => end(false))
    const alert = element('p', { role: 'alert' }, refusal)
    const field = element('input', {
      type: 'password',
      autocomplete: 'off',
      spellcheck: false,
      required: true,
    })
    const onsubmit = (event: Event) => {
      event.preventDefault()
      const text = readToken(field.value)
      if (text === undefined) {
        alert.textContent = 'This is no access token: it has signs that no token has.'
        return
      }
      keepToken(text)
      end(true)
    }
    const label = element('label', { className: 'field' }, 'Access token', field)
    const submit = element('button', { className: 'primary' }, 'Sign in')
    const isOverForm = document.querySelector('.record') !== null
    const back = isOverForm && button('Go on editing', () => end(false))
    const footer = element('footer', {}, submit, back)
    const form = element('form', { onsubmit }, heading, alert, label, footer)
    dialog.append(form, ...createHelp())
    document.body.append(dialog)
    dialog.showModal()
    // Another page of the tab may have signed out.
    showSession()
  })
}

/**
 * Returns the token in what was pasted, or `undefined` if it has other characters than a
 * token (RFC 6750, 2.1). A header field might be unable to carry them.
 */
function readToken(text: string): string | undefined {
  const around = /^[\s"'`“”„‘’«»]*(?:bearer\s+)?[\s"'`“”„‘’«»]*|[\s"'`“”„‘’«»]+$/gi
  const token = text.replaceAll(around, '')
  return /^[\w.~+/-]+=*$/.test(token) ? token : undefined
}

function createHelp() {
  // The name is new each time, because the store refuses one that is taken.
  const suffix = Math.random().toString(36).slice(2, 7)
  const command = `plant-store token create --name page-${suffix} --expires 12h`
  return [
    element('p', {}, 'On a terminal, the first start prints a token. To create another:'),
    createCommand('Where it is installed', command),
    createCommand('In a clone', `npx --yes pnpm@12 ${command}`),
    element('p', {}, 'With ', createCode('--scope read'), ' it may only read.'),
  ]
}

/** Returns a line to copy. */
function createCommand(where: string, text: string) {
  return element('p', {}, where, createCode(text, 'command'))
}

export function createCode(text: string, className = ''): HTMLElement {
  return element('code', { translate: false, className }, text)
}
