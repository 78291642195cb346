import { RefusedError } from '@plant-store/client'
import { answerOf, byId } from './dom.ts'

/** The access token, for as long as the tab is open. The API reference keeps it under the same name. */
const key = `${new URL('.', location.href).pathname} token`

export const token = () => sessionStorage.getItem(key) ?? ''

export function signOut(): void {
  sessionStorage.removeItem(key)
}

export const isRefused = (error: unknown, status: number): error is RefusedError =>
  error instanceof RefusedError && error.status === status

/** Returns what went wrong: as the store words it, with its number. */
export function toWords(error: unknown): string {
  if (error instanceof RefusedError) {
    return `${error.message} (${error.number})`
  }
  return error instanceof Error ? error.message : `${error}`
}

/** Runs a call, and asks for a token for as long as the store accepts none. The call must be repeatable after a 401. */
export async function signedIn<Result>(call: () => Promise<Result>): Promise<Result> {
  let refusal: unknown
  for (;;) {
    if (
      token() === '' &&
      !(await askToken(refusal === undefined ? '' : toWords(refusal)))
    ) {
      throw refusal ?? new Error('Sign in to see what is in the store.')
    }
    try {
      return await call()
    } catch (error) {
      if (!isRefused(error, 401)) {
        throw error
      }
      refusal = error
      signOut()
    }
  }
}

const dialog = byId('sign-in', HTMLDialogElement)
const field = byId('token', HTMLInputElement)

/** Resolves to whether a token was given. */
async function askToken(refusal: string): Promise<boolean> {
  byId('sign-in-refusal', HTMLElement).textContent = refusal
  field.value = ''
  await answerOf(dialog)
  return token() !== ''
}

// Before the dialog is closed, which others hear of later.
dialog.addEventListener('submit', () => {
  sessionStorage.setItem(key, field.value.trim())
  field.value = ''
})
